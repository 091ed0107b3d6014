"""Studies with any number of sides, on SQLite only, because the storage doesn't matter here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import rank1
from rank1 import Study
from rank1.studies.levels import Change, Levels
from rank1.studies.spec import read_spec, room_for
from rank1.studies.state import layout_of

pytestmark = [
    pytest.mark.usefixtures("uncompiled"),
    pytest.mark.filterwarnings("ignore:.*starts over"),
]

HOME = {"headline": ["A", "B"], "image": ["x", "y", "z"], "button": ["buy", "go"]}
MANY = {f"side {k}": ["a", "b"] for k in range(16)}


@pytest.fixture
def create(tmp_path: Path) -> Iterator[Callable[..., Study]]:
    made: list[Study] = []

    def create(sides: Any = None, **options: Any) -> Study:
        name = f"study {len(made)}"
        place = str(tmp_path / "rank1.db")
        made.append(Study.create(name, sides=sides or HOME, storage=place, seed=1, **options))
        return made[-1]

    yield create
    for study in made:
        study.close()


def play(study: Study, steps: int) -> None:
    for k in range(steps):
        given = study.ask()
        good = all(label in ("A", "x", "buy", "a", "go") for label in given.levels.values())
        study.tell(given.id, float(good or k % 3 == 0))


@pytest.mark.parametrize("policy", ["uts", "top_two", "ucb1", "thompson", "kl_ucb", "uniform"])
@pytest.mark.parametrize(
    "sides", [{"only": ["a", "b", "c"]}, HOME, {f"side {k}": ["a", "b"] for k in range(5)}], ids=len
)
def test_sides_come_and_go(create: Callable[..., Study], sides: Any, policy: str) -> None:
    study = create(sides, policy=policy)
    play(study, 70)
    waiting = study.ask(count=4)
    assert all(list(each.levels) == list(sides) for each in waiting)
    assert not any(hasattr(each, "row") for each in waiting)
    first = next(iter(sides))
    before = study.best()
    assert before.counts.shape == tuple(map(len, sides.values()))
    assert before.leader is not None
    assert len(before.leader) == len(sides)
    assert study.revise(add={first: ["new"]}, retire={first: [sides[first][1]]}) == 1
    assert study.sides[first] == [label for label in sides[first] if label != sides[first][1]] + [
        "new"
    ]
    kept = [k for k in range(len(sides[first])) if k != 1]
    np.testing.assert_array_equal(study.best().counts[: len(kept)], before.counts[kept])
    study.tell_many([(each.id, 1.0) for each in waiting])
    assert any(each.levels[first] == "new" for each in study.ask(count=60))
    assert study.revise(add={first: [sides[first][1]]}) == 2
    total = study.best().counts.sum()
    assert total == 74
    assert study.verify().problems == []
    fresh = Study.open(study.name, study.access.storage)
    assert fresh.best().counts.tolist() == study.best().counts.tolist()


def test_sixteen_sides(create: Callable[..., Study]) -> None:
    study = create(MANY, policy="thompson")
    given = study.ask()
    assert list(given.levels) == list(MANY)
    study.tell(given.id, 1.0)
    study.revise(add={"side 15": ["c"]})
    assert study.verify().ok
    with pytest.raises(rank1.InputError, match=r"add\.side 3 must be at most 6 new names, got 7"):
        study.revise(add={"side 3": [str(k) for k in range(7)]})


@pytest.mark.parametrize(
    ("sides", "message"),
    [
        ({}, "sides must be 1 to 16 sides, got 0"),
        ({str(k): ["a"] for k in range(17)}, "sides must be 1 to 16 sides, got 17"),
        ({"image": []}, "sides.image must be 1 to 4,096 names, got 0"),
        ({"image": ["x", "x"]}, "sides.image must be names that differ, got 'x' twice"),
        ({"image": "xyz"}, "sides.image must be a list of names, got 'xyz'"),
        ({"image": ["x", 3]}, r"sides.image\[1\] must be text, got 3"),
        ({"": ["x"]}, "sides must be text of 1 to 256 characters, got an empty text"),
        ({"reward": ["x"]}, "sides must be sides that aren't called reward, got 'reward'"),
        ([["x", "y"]], "sides must be a mapping"),
        ({str(k): list("abcdefghij") for k in range(9)}, "sides must be small .* got 1,000,000,0"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_bad_sides_are_refused(tmp_path: Path, sides: Any, message: str) -> None:
    with pytest.raises((rank1.InputError, rank1.InputTypeError), match=message):
        Study.create("home", sides=sides, storage=str(tmp_path / "rank1.db"))
    assert not any(tmp_path.iterdir())


def test_two_forms_are_not_mixed(tmp_path: Path) -> None:
    place = str(tmp_path / "rank1.db")
    with pytest.raises(rank1.InputError, match="sides must be None if rows and columns"):
        Study.create("home", ["a"], ["b"], sides=HOME, storage=place)
    with pytest.raises(rank1.InputError, match="sides must be 2 for rank1elim, got 3"):
        Study.create("home", sides=HOME, policy="rank1elim", storage=place)
    two = Study.create("two", sides={"who": ["a", "b"], "how": ["c"]}, storage=place)
    given = two.ask()
    assert (given.levels, given.row, given.column) == ({"who": "a", "how": "c"}, "a", "c")
    assert two.revise(add_columns=["d"], retire={"who": ["b"]}) == 1
    assert two.sides == {"who": ["a"], "how": ["c", "d"]}
    three = Study.create("three", sides=HOME, storage=place)
    with pytest.raises(rank1.InputError, match="add_rows must be left out"):
        three.revise(add_rows=["C"])
    with pytest.raises(rank1.InputError, match="add must be by sides, which are headline, image"):
        three.revise(add={"colour": ["red"]})
    with pytest.raises(AttributeError, match="rows and columns are for two sides"):
        _ = three.rows


def test_history_export_replay_and_fit(create: Callable[..., Study], tmp_path: Path) -> None:
    study = create()
    file = tmp_path / "known.csv"
    lines = ["headline,image,button,reward", "A,x,buy,1", "B,z,go,0", "A,x,buy,1"]
    file.write_text("\n".join(lines))
    assert study.import_history(file).rewards == 3
    assert study.import_history([("A", "y", "go", 0.5)]).rewards == 1
    with pytest.raises(rank1.InputError, match="line 1 of the history: image must be one of the"):
        study.import_history([("A", "nope", "go", 0.5)])
    with pytest.raises(rank1.InputError, match=r"lines of \(headline, image, button, reward\)"):
        study.import_history([("A", "x", 0.5)])
    play(study, 60)
    assert study.best().counts[0, 0, 0] >= 2
    assert study.export(tmp_path / "log.jsonl") == 60
    first = json.loads((tmp_path / "log.jsonl").read_text().splitlines()[0])
    assert list(first["levels"]) == list(HOME)
    assert "row" not in first
    assert study.export(tmp_path / "log.parquet") == 60
    found = study.replay("ucb1")
    assert len(found.best) == 3
    assert found.rewards == 64
    fitted = study.fit(B=19)
    assert fitted.means.shape == (2, 3, 2)
    document = fitted.to_dict()
    assert list(document["effects"]) == list(HOME)
    assert all(list(each["levels"]) == list(HOME) for each in document["deviating"])
    assert "A × x × buy" in str(study.best()._repr_html_())


def test_data_of_a_suggestion(create: Callable[..., Study], tmp_path: Path) -> None:
    study = create()
    data = {"page": 7, "who": "Zoë", "deep": [1, {"a": None}]}
    given = study.ask(data=data, key="k")
    assert given.data == data
    assert study.ask(data=data, key="k") == given
    with pytest.raises(rank1.ConflictError, match="used for something else"):
        study.ask(data={}, key="k")
    assert study.ask(unit="u", data={"n": 1}).data == study.ask(unit="u").data == {"n": 1}
    assert [each.data for each in study.ask(count=2, data={})] == [{}, {}]
    assert study.ask().data is None
    lines, after = study.lines()
    assert ([line["data"] for line in lines], after) == ([data, {"n": 1}, {}, {}, None], 0)
    assert study.events(kinds=["suggested"], limit=1)[0]["data"] == data
    study.export(tmp_path / "log.parquet")
    for bad, message in (
        ({"a": "x" * 5000}, "data must be a JSON object of at most 4,096 bytes, got 5,0"),
        ([1], "data must be a JSON object, got"),
        ({"a": {1, 2}}, "data must be a JSON object, got .* not JSON serializable"),
        ({"a": float("nan")}, "data must be a JSON object"),
        ({3: 1}, "data must be a JSON object"),
    ):
        with pytest.raises((rank1.InputError, rank1.InputTypeError), match=message):
            study.ask(data=bad)  # type: ignore[arg-type]
    assert study.verify().ok


def test_the_log_by_public_names(create: Callable[..., Study]) -> None:
    study = create()
    given = study.ask(unit="u", key="k")
    study.tell(given.id, 1.0)
    study.revise(add={"image": ["w"]})
    created, asked, told, revised = study.events()
    assert (created["kind"], asked["id"], asked["levels"]) == ("created", given.id, given.levels)
    assert (asked["unit"], asked["key"], told["reward"], told["late"]) == ("u", "k", 1.0, False)
    assert revised["change"] == {"add": {"image": ("w",)}, "retire": {}}
    assert [each["seq"] for each in study.events(newest=True, limit=2)] == [4, 3]
    assert study.last_event() == 4
    with pytest.raises(rank1.InputError, match="kinds must be one of"):
        study.events(kinds=["asked"])


def test_closing_keeps_a_snapshot(create: Callable[..., Study]) -> None:
    def kept(study: Study) -> int | None:
        with study.access.storage.reading() as log:
            found = log.snapshot(study.access.study.id, layout_of(study.spec))
        return found and found.seq

    study = create()
    play(study, 10)
    study.close()  # too little has happened for a snapshot
    assert kept(study) is None
    play(study, 50)
    study.close()
    assert kept(study) == 121
    again = Study.open(study.name, study.access.storage)
    again.ask()
    again.close()  # the existing snapshot is good enough
    assert kept(study) == 121
    assert again.snapshot()
    assert kept(study) == 122
    assert Study.open(study.name, study.access.storage).verify().ok


def test_specifications_of_other_versions(create: Callable[..., Study]) -> None:
    text = json.loads(create().spec.text)
    assert read_spec(json.dumps(text | {"colour": "of a later version"})) == create().spec
    short = {name: text[name] for name in ("format", "sides", "goal", "policy", "settings")}
    assert read_spec(json.dumps(short)).on_expiry == "drop"
    with pytest.raises(rank1.FormatError, match=r"of format 9.*knows up to 4.*upgrade rank1"):
        read_spec(json.dumps(text | {"format": 9}))
    del short["policy"]
    with pytest.raises(rank1.DamagedError, match="specification can't be read"):
        read_spec(json.dumps(short))


def test_there_is_room_for_levels_to_come() -> None:
    for sizes in ([1], [4096] * 2, [2] * 16, [1] * 16, [1024, *[2] * 10], [4096, 256]):
        room = room_for(sizes)
        assert all(size <= most <= 4096 for size, most in zip(sizes, room, strict=True))
        assert np.prod(room, dtype=float) <= 2**50


@dataclass(frozen=True)
class Mine(rank1.Uniform):
    """A policy from another package."""

    name: ClassVar[str] = "mine"
    step: float = 1.0


def test_a_policy_of_another_package(create: Callable[..., Study]) -> None:
    for policy in (Mine(step=3.0), f"{__name__}:Mine:step=3"):
        study = create(policy=policy)
        assert study.spec.policy == f"{__name__}:Mine"
        play(study, 5)
        again = Study.open(study.name, study.access.storage)
        assert again.policy == Mine(step=3.0)
        assert again.verify().ok

    class Local(rank1.Uniform):
        name = "local"

    with pytest.raises(rank1.InputError, match="policy must be one whose class can be imported"):
        create(policy=Local())


def test_an_arm_alone_has_the_places_it_has_among_others(create: Callable[..., Study]) -> None:
    spec = create({"a": ["x", "y", "z"], "b": ["s", "t"]}, policy="uts").access.spec
    levels = Levels(spec)
    levels.change(Change({"b": ("u",)}, {"a": ("y",)}))
    rooms = levels.room
    arms = [rooms.arm(pair) for pair in np.ndindex(4, 4)] + [-1, rooms.arms]
    tables, living = levels.places_of(arms)
    assert set(tables.tolist()) == {-1, *range(9)}
    assert set(living.tolist()) == {-1, *range(6)}
    for arm, table, one in zip(arms, tables, living, strict=True):
        assert levels.places_of(arm) == (table, one)
