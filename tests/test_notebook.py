"""How notebooks show values."""

from __future__ import annotations

import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rank1
from rank1 import notebook

EVIL = "<script>alert('a & b')</script>"


def shown(value: Any) -> str:
    """Return the HTML of a value, and check that it is well-formed."""
    html: str = value._repr_html_()
    ET.fromstring(f"<div>{html.replace('<br>', '<br/>')}</div>")
    return html


def test_a_problem_shows_its_means_and_its_best_pair() -> None:
    html = shown(rank1.spike(K=3, L=4, p_u=0.5, p_v=0.5, delta_u=0.4, delta_v=0.4))
    assert "3×4</td>" in html
    assert html.count("<title>") == 12
    assert "0 × 0: 0.81" in html
    assert html.count('stroke="#DD5500"') == 1


@pytest.mark.parametrize("sides", [1, 3])
def test_a_problem_of_other_than_two_sides_shows_the_averages_of_its_levels(sides: int) -> None:
    factors = [[0.9, 0.5], [0.8, 0.4, 0.6], [0.5, 0.7]][:sides]
    html = shown(rank1.Product(factors))
    assert html.count("<title>") == sum(map(len, factors))
    assert html.count('stroke="#DD5500"') == sides
    average = 0.9 if sides == 1 else 0.9 * 0.6 * 0.6
    assert f"<title>0: {average:.3g}</title>" in html


def test_what_is_not_known_is_left_open() -> None:
    means = np.full((2, 2, 2), np.nan)
    means[0, 0] = 0.25, 0.75
    html = notebook.level_map(means, [["a", "b"], ["c", "d"], ["e", EVIL]], None, "means")
    assert "<title>a: 0.5</title>" in html
    assert "<title>b: –</title>" in html
    assert "<script" not in html
    assert html.count('fill="none"') == 2


def test_names_are_escaped() -> None:
    html = shown(rank1.Campaign({EVIL: 0.5, "b": 0.4}, {"email": 0.2}))
    assert "&lt;script&gt;" in html
    assert "<script" not in html


def test_a_grid_of_any_size_is_a_small_picture() -> None:
    problem = rank1.spike(K=1_000_000, L=300_000, p_u=0.5, p_v=0.5, delta_u=0.4, delta_v=0.4)
    html = shown(problem)
    assert "mean rewards of 32 × 32 lines" in html
    assert html.count('stroke="#DD5500"') == 1
    assert len(html) < 120_000


def test_a_problem_of_any_means_shows_itself() -> None:
    table = rank1.datasets.hillstrom()
    assert "Mens E-Mail" in shown(rank1.datasets.grid_problem(table))
    same = rank1.Bernoulli([0.5, 0.5], [0.5])
    assert "0.25 (faint) to 0.25" in shown(same)


def test_results_show_a_row_a_policy_and_their_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = rank1.spike(K=3, L=2, p_u=0.4, p_v=0.4, delta_u=0.5, delta_v=0.5)
    played = rank1.simulate([rank1.Rank1Elim(), rank1.UCB1()], problem, 2000, 3, seed=1)
    html = shown(played)
    assert html == shown(played)  # the same the second time
    for outcome in played.outcomes:
        assert f'<td style="text-align:left">{outcome.label}</td>' in html
        assert f">{outcome.expected[:, -1].mean():,.1f} ± " in html
    assert html.count("<svg") == 1
    assert "currentColor" in html
    assert len(html) < 60_000
    trace = shown(played.trace())
    assert trace.count("<svg") == 1
    assert "run 0 of 2,000 steps" in trace

    def fail(*_: Any, **__: Any) -> None:
        raise MemoryError

    monkeypatch.setattr("rank1.plots.html.svg_file", fail)
    assert "rank1elim" in shown(played)  # the table replaces the picture
    monkeypatch.setattr("rank1.plots.html.plot_result", fail)
    assert played._repr_html_() is None


def test_large_pictures_become_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = rank1.spike(K=3, L=2, p_u=0.4, p_v=0.4, delta_u=0.5, delta_v=0.5)
    monkeypatch.setattr("rank1.plots.html.MAX_SVG", 1000)
    html: Any = rank1.simulate(rank1.UCB1(), problem, 100, 2)._repr_html_()
    assert "<svg" not in html
    assert "data:image/png;base64," in html


def test_pulls_until_one_may_stop() -> None:
    problem = rank1.spike(K=3, L=2, p_u=0.4, p_v=0.4, delta_u=0.5, delta_v=0.5)
    html = shown(rank1.identify(rank1.TopTwo(), problem, runs=4))
    assert "4 of 4" in html
    assert html.count("<svg") == 1


def test_what_is_read_in_a_picture_keeps_its_digits() -> None:
    problem = rank1.spike(K=3, L=2, p_u=0.4, p_v=0.4, delta_u=0.5, delta_v=0.5)
    found = rank1.identify(rank1.TopTwo(), problem, 0.999, n=2000, runs=2)
    assert "confidence 0.999" in texts_of(shown(found))
    policies = [rank1.UCB1(confidence=it) for it in (1.001, 1.009)]
    html = shown(rank1.simulate(policies, problem, 500, 2))
    texts = texts_of(html)
    for policy in policies:
        assert policy.label in texts
    assert re.search(r' d="M \d+\.\d', html)
    assert not re.search(r' (d|x|y|transform)="[^"]*\.\d{3}', html)


def texts_of(html: str) -> str:
    return "\n".join(re.findall("<text.*?</text>", html, re.DOTALL))


def test_a_study_shows_what_it_found_and_writes_nothing(tmp_path: Path) -> None:
    study = rank1.Study.create(
        "spring & <co>", [EVIL, "b"], ["c", "d"], storage=tmp_path / "s.db", seed=1,
        reward_window=1e-6,
    )  # fmt: skip
    html = shown(study)
    assert "spring &amp; &lt;co&gt;: uts, to earn" in html
    assert "none yet" in html
    asked = study.ask()
    study.tell(asked.id, 1.0)
    study.ask()
    before = study.look(lambda state, log: state.overdue(time.time()))
    html = shown(study)
    after = study.look(lambda state, log: state.overdue(time.time()))
    assert len(before) == len(after) == 1
    assert "<script" not in html
    assert html.count('fill="none"') == 4  # three pairs without a report, and the frame
    assert shown(study.best())
    study.close()


def test_a_large_study_is_shown_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Computing its verdict would take seconds."""
    monkeypatch.setattr("rank1.studies.study.best_of", None)
    names = [str(k) for k in range(400)]
    with rank1.Study.create("large", names, names, storage=tmp_path / "s.db") as study:
        html = shown(study)
    assert "400 × 400" in html
    assert "<svg" not in html


def test_lines_that_are_left_out_are_never_the_best() -> None:
    for keep in (0, 7, 99_999):
        lines = notebook.some_lines(100_000, keep)
        assert keep in lines
        assert len(set(lines.tolist())) == notebook.MAX_LINES
        assert (np.diff(lines) > 0).all()


def test_plotting_is_loaded_when_something_is_shown() -> None:
    code = (
        "import sys, rank1; problem = rank1.spike(2, 2, 0.5, 0.4, 0.4, 0.5);"
        "problem._repr_html_();"
        "print('matplotlib' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
