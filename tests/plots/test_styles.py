"""Policies can be told apart in a picture, also by the colour-blind and on a dark page."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import rank1.paper
from rank1.plots.styles import OTHERS, STYLES, Style, fills, line_styles, style_of
from rank1.policies import POLICIES
from tests.plots.colours import VISIONS, contrast, delta_e, difference

#: About six times what is just seen side by side.
FAR = 15


def test_a_style_is_that_of_a_policy() -> None:
    assert len(STYLES) > 10
    assert set(STYLES) <= set(POLICIES)


def pairs(styles: list[Style]) -> list[tuple[Style, Style]]:
    return [
        (one, other)
        for one, other in itertools.combinations(styles, 2)
        if one.dashes == other.dashes
    ]


@pytest.mark.parametrize("vision", VISIONS)
def test_policies_of_the_same_dashes_differ_in_colour(vision: str) -> None:
    compared = pairs([*STYLES.values(), *OTHERS])
    assert len(compared) > 30
    for one, other in compared:
        assert difference(one.colour, other.colour, vision) >= FAR, (one, other)


def test_all_colours_differ_for_whoever_sees_them() -> None:
    for one, other in itertools.combinations(STYLES.values(), 2):
        assert difference(one.colour, other.colour, "all colours") >= 10, (one, other)


def test_lines_stand_out_from_the_page() -> None:
    page = (Path(rank1.paper.__file__).parent / "templates" / "style.css").read_text()
    backs = re.findall(r"--back: (#\w+);", page)
    assert len(backs) == 2  # light and dark
    for style in [*STYLES.values(), *OTHERS]:
        if style.colour != "#000000":  # which the page turns into the colour of its text
            for back in backs:
                assert contrast(style.colour, back.replace("#fff", "#ffffff")) >= 3, style


def test_somebody_elses_policy_keeps_its_style() -> None:
    assert style_of("mine") == style_of("mine:c=2") == Style("#CC79A7", (0, (6, 2, 1, 2, 1, 2)))
    assert style_of("enim") != style_of("mine")
    assert {style_of(f"policy{k}") for k in range(100)} == set(OTHERS)
    assert not {style.dashes for style in OTHERS} & {style.dashes for style in STYLES.values()}


def test_what_would_look_alike_has_markers() -> None:
    labels = ["ucb1", "ucb1:confidence=1", "rank1elim", "ucb1:confidence=3", "ucb1"]
    styles = line_styles(labels)
    assert [styles[label]["marker"] for label in labels] == ["", "o", "", "s", ""]
    clash = [f"policy{k}" for k in range(100) if style_of(f"policy{k}") == OTHERS[0]][:3]
    assert len({str(style) for style in line_styles(clash).values()}) == 3
    areas = fills([*STYLES, *clash, "ucb1:confidence=1"])
    assert len(set(areas.values())) == len(areas)
    # Areas of the same hatch are those of the same dashes.
    for one, other in itertools.combinations(STYLES, 2):
        same = STYLES[one].dashes == STYLES[other].dashes
        assert (areas[one][1] == areas[other][1]) == same


# The measure itself.


def test_known_differences() -> None:
    """Pairs 1, 4, 7, 17 and 25 of the table in Sharma, Wu and Dalal."""
    for one, other, expected in (
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, -1.3802, -84.2814), (50, 0, -82.7485), 1.0),
        ((50, 0, 0), (50, -1, 2), 2.3669),
        ((50, 2.5, 0), (73, 25, -18), 27.1492),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
    ):
        assert delta_e(np.array(one, float), np.array(other, float)) == pytest.approx(
            expected, abs=5e-5
        )


def test_the_old_colours_would_fail() -> None:
    assert difference("#E69F00", "#B8A000", "protanopia") < 4  # kl_ucb and osub
    assert difference("#D55E00", "#B8A000", "deuteranopia") < 8  # ucb1 and osub
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#BBBBBB", "#ffffff") < 2
    for matrix in VISIONS.values():
        assert matrix.sum(axis=1) == pytest.approx(np.ones(3), abs=2e-6)  # grey stays grey
