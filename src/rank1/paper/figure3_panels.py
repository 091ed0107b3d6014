"""The three panels of Figure 3."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rank1.paper.completion.entries import Floats
from rank1.plots import draw_curve, line_styles, new_figure, plain_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw"]


def draw(document: dict[str, Any]) -> dict[str, Figure]:
    """Known ratings, completed ratings, and regret over the steps."""
    observed, completed = (
        np.array(document[name], dtype=np.float64) for name in ("observed", "completed")
    )
    rows, columns = (_by_average(observed, completed, axis) for axis in (1, 0))
    figure, axes = new_figure(12, 4.1, ncols=3, width_ratios=[1, 1, 1.25])
    rank = document["completion"]["rank"]
    names = ("a. Average ratings (yellow: none)", f"b. Completed, rank {rank}")
    for ax, name, matrix in zip(axes, names, (observed, completed), strict=False):
        image = ax.imshow(
            matrix[np.ix_(rows, columns)],
            cmap=_colours(),
            vmin=1,
            vmax=5,
            interpolation="nearest",
        )
        ax.set(xticks=[], yticks=[], xlabel="Movie", ylabel="Group of users")
        ax.set_title(name, loc="left", fontsize=10)
    if note := _stripes(document):
        axes[1].set_xlabel(f"Movie\n{textwrap.fill(note, 60)}", fontsize=8)
    bar = figure.colorbar(image, ax=axes[:2].tolist(), shrink=0.8, pad=0.02, ticks=range(1, 6))
    bar.set_label("Stars")
    styles = line_styles(entry["label"] for entry in document["policies"])
    for entry in document["policies"]:
        curve, label = entry["expected_curve"], entry["label"]
        draw_curve(axes[2], entry["steps"], curve["mean"], curve["se"], styles[label], label=label)
    axes[2].set(xlim=(0, document["n"]), ylim=(0, None), xlabel="Step", ylabel="Expected regret")
    axes[2].set_title(f"c. Regret, mean of {document['runs']} runs", loc="left", fontsize=10)
    plain_axes(axes[2])
    axes[2].legend(frameon=False, fontsize=9)
    figure.suptitle(f"Figure 3: {document['data']['label']}", x=0.01, ha="left", fontsize=11)
    return {"figure3": figure}


def _stripes(document: dict[str, Any]) -> str:
    """Why some columns of panel b are paler than their neighbours."""
    data, steps = document["data"], document["completion"]["iterations"]
    stripes = data["stripes"]
    return (
        f"Pale or white stripes: {stripes['movies']} movies rated by at most "
        f"{stripes['rated_by']} of {data['groups']} groups. Their ratings average "
        f"{stripes['average']:.1f} stars; {steps} iterations from 0 come to "
        f"{stripes['completed']:.1f}."
        if stripes["movies"]
        else ""
    )


def _by_average(observed: Floats, completed: Floats, axis: int) -> NDArray[np.int64]:
    """Lines by their average rating, the highest first; unrated ones by their completed average."""
    seen = np.isfinite(observed)
    count = seen.sum(axis=axis)
    total = np.where(seen, observed, 0.0).sum(axis=axis)
    average = np.where(count > 0, total / np.maximum(count, 1), completed.mean(axis=axis))
    return np.argsort(-average, kind="stable")


def _colours() -> Any:
    """Darker is higher; missing ratings are yellow."""
    from matplotlib import colormaps

    return colormaps["Greys"].with_extremes(bad="#F2D94E")
