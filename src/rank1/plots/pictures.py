"""Figures that notebooks show, without pyplot and its global figures."""

from __future__ import annotations

import io
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

__all__ = ["Picture", "PictureAxes"]


class Picture(Figure):
    """A figure that is shown if it is the last value of a notebook's cell."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        FigureCanvasAgg(self)

    def _repr_png_(self) -> bytes:
        """The PNG that a notebook shows."""
        file = io.BytesIO()
        self.savefig(file, format="png")
        return file.getvalue()


class PictureAxes(Axes):
    """Axes that are shown as the whole figure they belong to."""

    def _repr_png_(self) -> bytes | None:
        figure = self.get_figure(root=True)
        return figure._repr_png_() if isinstance(figure, Picture) else None
