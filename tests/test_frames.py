"""How a result's summary is printed."""

from __future__ import annotations

import copy
import pickle
import re

import polars as pl

import rank1
from rank1.frames import WholeFrame


def test_a_printed_summary_leaves_nothing_out() -> None:
    policies = [rank1.Rank1Elim(confidence_scale=1 / (3 + k)) for k in range(12)]
    problem = rank1.spike(3, 3, 0.5, 0.5, 0.3, 0.3)
    summary = rank1.simulate(policies, problem, 1000, 3, seed=1).summary()
    assert isinstance(summary, pl.DataFrame)
    for text in (str(summary), repr(summary)):
        assert "…" not in text
        for policy in policies:
            assert len(re.findall(rf"\b{re.escape(policy.label)} +┆ 3 ", text)) == 1
        for column in ("expected_se", "realised_se", "expected_std", "found"):
            assert summary[column].null_count() == 0
            assert column in text
        rows = [line for line in text.splitlines() if "rank1elim" in line]
        assert len(rows) == 12  # no cell is split over two lines
    html = summary._repr_html_()
    assert all(f"{name}</th>" in html for name in summary.columns)


def test_polars_is_left_as_it_was() -> None:
    frame = WholeFrame({f"column{k}": [k] for k in range(20)})
    plain = str(pl.DataFrame(frame))
    assert "…" not in str(frame)
    assert "…" in plain
    assert str(pl.DataFrame(frame)) == plain


def test_it_is_a_frame_like_any_other() -> None:
    frame = WholeFrame({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    assert frame.equals(pl.DataFrame(frame))
    assert frame.filter(pl.col("a") > 1)["b"].to_list() == ["y", "z"]
    for again in (copy.deepcopy(frame), pickle.loads(pickle.dumps(frame))):
        assert again.equals(frame)
