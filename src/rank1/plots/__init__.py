"""Plots of results and traces. Matplotlib is imported when the first one is drawn."""

from rank1.plots.figures import (
    checked_ending,
    draw_curve,
    new_figure,
    plain_axes,
    save_figure,
    short_numbers,
)
from rank1.plots.identification import plot_identification
from rank1.plots.regret import plot_result
from rank1.plots.study import plot_best
from rank1.plots.styles import colour_of, fills, line_styles
from rank1.plots.trace import plot_trace

__all__ = [
    "checked_ending",
    "colour_of",
    "draw_curve",
    "fills",
    "line_styles",
    "new_figure",
    "plain_axes",
    "plot_best",
    "plot_identification",
    "plot_result",
    "plot_trace",
    "save_figure",
    "short_numbers",
]
