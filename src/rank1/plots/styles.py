"""The look of a policy: the same colour and dashes in every plot.

Colours alone aren't enough: colour-blind people can't distinguish eleven of them. So policies with
the same dashes have colours that they can distinguish, and others differ by their dashes. All have
a contrast of 3 or more on white and on the dark page of the report, where black becomes the colour
of its text.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple
from zlib import crc32

__all__ = ["Style", "colour_of", "fills", "line_styles", "style_of"]


class Style(NamedTuple):
    """A colour, and dashes as in matplotlib."""

    colour: str
    dashes: str | tuple[int, tuple[int, ...]]


_SOLID, _DASHED, _DOTTED, _DASH_DOT = "-", "--", ":", "-."
_LONG_DASHED, _DASH_DOT_DOT = (0, (9, 3)), (0, (6, 2, 1, 2, 1, 2))

STYLES = {
    "rank1elim": Style("#0066BB", _SOLID),
    "ucb1": Style("#DD5500", _SOLID),
    "linucb": Style("#009E73", _SOLID),
    "glm_ucb": Style("#CC79A7", _SOLID),
    "uts": Style("#000000", _SOLID),
    "rank1elim_kl": Style("#995522", _DASHED),
    "kl_ucb": Style("#BB8800", _DASHED),
    "thompson": Style("#5599CC", _DASHED),
    "top_two": Style("#8844CC", _DASHED),
    "bet_elim": Style("#007766", _DASHED),
    "factor_ts": Style("#CC00AA", _DOTTED),
    "osub": Style("#889911", _DASH_DOT),
    "imed_ub": Style("#BB3344", _DASH_DOT),
    "id_ts": Style("#4499AA", _DASH_DOT),
    "pair_elim": Style("#6666CC", _DASH_DOT),
    "uniform": Style("#7F7F7F", _DOTTED),
    "oracle": Style("#AA7744", _DOTTED),
}
#: For third-party policies; none of the above has these dashes.
OTHERS = [
    Style(STYLES[name].colour, dashes)
    for dashes in (_DASH_DOT_DOT, _LONG_DASHED)
    for name in ("rank1elim", "ucb1", "linucb", "glm_ucb")
]
#: Distinguish lines with the same colour and dashes: one policy with several settings.
_MARKERS = ("", "o", "s", "^", "D", "x")
#: The same for areas: hatches instead of dashes, and instead of markers.
_HATCHES: dict[Any, str] = {
    _SOLID: "",
    _DASHED: "//",
    _DASH_DOT: "\\\\",
    _DOTTED: "..",
    _LONG_DASHED: "++",
    _DASH_DOT_DOT: "xx",
}
_SIGNS = ("", "o", "*", "+", "-", "|")


def style_of(policy: str) -> Style:
    """The style of a policy with any settings; a third-party policy gets one by its name.

    >>> style_of("linucb:radius=determinant")
    Style(colour='#009E73', dashes='-')
    """
    name = policy.split(":")[0]
    return STYLES.get(name) or OTHERS[crc32(name.encode()) % len(OTHERS)]


def colour_of(policy: str) -> str:
    """The colour of a policy with any settings."""
    return style_of(policy).colour


def line_styles(labels: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Keywords of `Axes.plot` for each label of a plot; markers distinguish equal styles.

    >>> styles = line_styles(["ucb1", "ucb1:confidence=1"])
    >>> [(style["ls"], style["marker"]) for style in styles.values()]
    [('-', ''), ('-', 'o')]
    """
    return {
        label: {"color": style.colour, "ls": style.dashes, "marker": _MARKERS[k % len(_MARKERS)]}
        for label, style, k in _numbered(labels)
    }


def fills(labels: Iterable[str]) -> dict[str, tuple[str, str]]:
    """The colour and the hatch of each label's area in a plot.

    >>> fills(["ucb1", "kl_ucb", "ucb1:confidence=1"])
    {'ucb1': ('#DD5500', ''), 'kl_ucb': ('#BB8800', '//'), 'ucb1:confidence=1': ('#DD5500', 'o')}
    """
    return {
        label: (style.colour, _HATCHES[style.dashes] + _SIGNS[k % len(_SIGNS)])
        for label, style, k in _numbered(labels)
    }


def _numbered(labels: Iterable[str]) -> Iterable[tuple[str, Style, int]]:
    """Labels with their style, and the number of earlier labels with the same style."""
    seen: dict[Style, int] = {}
    for label in dict.fromkeys(labels):
        style = style_of(label)
        yield label, style, seen.get(style, 0)
        seen[style] = seen.get(style, 0) + 1
