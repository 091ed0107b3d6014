"""Units drawn by hash: the same everywhere, by the shares, and independent between sides."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import rank1
from rank1.assignment import assign, held_out, murmur3

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text(encoding="utf-8"))
SIDES = {"headline": {"A": 0.3, "B": 0.7}, "image": {"x": 0.2, "y": 0.5, "z": 0.3}}
SHARES: dict[str, Any] = {"version": 12, "salt": "3f9c", "sides": SIDES}


@pytest.mark.parametrize(
    ("data", "seed", "expected"),
    [  # published with other implementations of MurmurHash3_x86_32
        (b"", 0, 0),
        (b"", 1, 0x514E28B7),
        (b"\xff\xff\xff\xff", 0, 0x76293B50),
        (b"!Ce\x87", 0x5082EDEE, 0x2362F9DE),
        (b"!Ce", 0, 0x7E4A8634),
        (b"!C", 0, 0xA0F7B07A),
        (b"!", 0, 0x72661CF4),
        (b"The quick brown fox jumps over the lazy dog", 0x9747B28C, 0x2FA826CD),
    ],
)
def test_the_hash(data: bytes, seed: int, expected: int) -> None:
    assert murmur3(data, seed) == expected


def test_vectors() -> None:
    for row in VECTORS["murmur3"]:
        assert murmur3(row["text"].encode(), row["seed"]) == row["hash"]
    assert len(VECTORS["assign"]) == 20
    for row in VECTORS["assign"]:
        found = assign(row["shares"], row["unit"], row["given"])
        assert list(found.items()) == list(row["levels"].items())
        assert held_out(row["shares"], row["unit"]) == row["held_out"]
    assert {row["held_out"] for row in VECTORS["assign"]} == {True, False}


def test_sides_are_independent_and_by_their_shares() -> None:
    """30,000 units; chi-square on 2 and on 5 degrees of freedom, below the 0.1% points."""
    drawn = (assign(SHARES, f"visitor-{k}") for k in range(30_000))
    cells = Counter((levels["headline"], levels["image"]) for levels in drawn)
    by_shares = by_margins = 0.0
    for first in SIDES["headline"]:
        row = sum(n for (head, _), n in cells.items() if head == first)
        for second in SIDES["image"]:
            column = sum(n for (_, image), n in cells.items() if image == second)
            n = cells[first, second]
            expected = 30_000 * SIDES["headline"][first] * SIDES["image"][second]
            by_shares += (n - expected) ** 2 / expected
            by_margins += (n - row * column / 3e4) ** 2 / (row * column / 3e4)
    assert by_margins < 13.82
    assert by_shares < 20.52


def test_a_new_salt_draws_anew_and_a_new_version_does_not() -> None:
    units = [f"visitor-{k}" for k in range(2000)]
    other, later = {**SHARES, "salt": "other"}, {**SHARES, "version": 13}
    same = sum(assign(SHARES, u)["headline"] == assign(other, u)["headline"] for u in units)
    assert abs(same - 2000 * 0.58) < 4 * (2000 * 0.58 * 0.42) ** 0.5
    assert all(assign(SHARES, u) == assign(later, u) for u in units)


def test_held_out_units_stay_on_the_control() -> None:
    """10% of them, whatever the version, and independently of the levels."""
    held = {**SHARES, "holdout": 0.1, "control": {"headline": "B", "image": "z"}}
    units = [f"visitor-{k}" for k in range(8000)]
    out = [unit for unit in units if held_out(held, unit)]
    assert len(out) == 803  # hashes are the same everywhere; a standard error is 27
    assert all(assign(held, unit) == held["control"] for unit in out)
    rest = set(units) - set(out)
    assert all(assign(held, unit) == assign(SHARES, unit) for unit in rest)
    kept = sum(assign(SHARES, unit)["headline"] == "A" for unit in out)
    assert abs(kept - 0.3 * len(out)) < 4 * (len(out) * 0.21) ** 0.5


def test_levels_without_a_share_are_never_drawn() -> None:
    sides = {"side": {"none": 0.0, "some": 0.5, "nothing": 0.0, "more": 0.5, "last": 0.0}}
    drawn = {assign({"salt": "", "sides": sides}, str(k))["side"] for k in range(500)}
    assert drawn == {"some", "more"}


def test_rounding_leaves_the_last_level_with_a_share(monkeypatch: pytest.MonkeyPatch) -> None:
    thirds = {"a": 0.1, "b": 0.2, "c": 0.7 - 1e-9, "d": 0.0}
    monkeypatch.setattr(rank1.assignment, "_place", lambda *_: 1 - 2**-32)
    assert assign({"salt": "", "sides": {"side": thirds}}, "unit") == {"side": "c"}


def test_levels_that_look_like_numbers_come_first_as_in_javascript() -> None:
    names = ["b", "10", "9", "09", "4294967295", "-1", "²"]
    found = [level for level, _ in rank1.assignment._in_order(dict.fromkeys(names, 0.1))]
    assert found == ["9", "10", "b", "09", "4294967295", "-1", "²"]


def test_it_needs_neither_numpy_nor_the_rest() -> None:
    code = "import sys, rank1; rank1.assign; print(sorted(m for m in sys.modules if 'rank1' in m), "
    code += "'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['rank1', 'rank1.assignment', 'rank1.errors'] False"


@pytest.mark.parametrize(
    ("message", "shares", "unit", "given"),
    [
        ("unit must be text, got 17", SHARES, 17, None),
        ("unit must be text that UTF-8 can encode", SHARES, "\ud800", None),
        ("shares must be a mapping with a salt and sides, got None", None, "u", None),
        ("salt must be text, got None", {"sides": SIDES}, "u", None),
        ("sides must be the shares of each level", {"salt": "s"}, "u", None),
        ("shares of a must be a share for each level", {"salt": "", "sides": {"a": []}}, "u", None),
        ("shares of a must be numbers that add up to 1, got 0.9",
         {"salt": "", "sides": {"a": {"x": 0.9}}}, "u", None),
        (r"share of y in a must be a number in \[0, 1\], got -0.5",
         {"salt": "", "sides": {"a": {"x": 1.0, "y": -0.5}}}, "u", None),
        (r"share of x in a must be a number in \[0, 1\], got True",
         {"salt": "", "sides": {"a": {"x": True}}}, "u", None),
        ("given must be a level for each of segment, got {}",
         {**SHARES, "given": ["segment"]}, "u", None),
        ("given must be empty: no side is given, got {'segment': 'a'}", SHARES, "u",
         {"segment": "a"}),
        (r"given\.segment must be text, got 3", {**SHARES, "given": ["segment"]}, "u",
         {"segment": 3}),
        (r"given\.segment must be one of new, old, got 'odd'",
         {**SHARES, "given": {"segment": ["new", "old"]}}, "u", {"segment": "odd"}),
        ("holdout must be a number of at least 0 and below 1, got 1", {**SHARES, "holdout": 1}, "u",
         None),
        ("control must be a level of each of headline, image, got {'headline': 'A'}",
         {**SHARES, "holdout": 1 - 1e-12, "control": {"headline": "A"}}, "u", None),
    ],
)  # fmt: skip
def test_what_is_refused(message: str, shares: Any, unit: Any, given: Any) -> None:
    with pytest.raises((rank1.InputError, rank1.InputTypeError), match=message):
        assign(shares, unit, given)
