"""A study on a service refuses what a `Study` refuses, with the same class and argument."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import rank1
from tests.server.support import PATIENCE, served

SHOWN = {"h": "A", "i": "x"}


class Place(NamedTuple):
    """Two studies, and how to create and delete others, here or on a service."""

    find: Any  # draws by shares
    given: Any  # has a given side
    id: str  # of a pending suggestion of `find`
    create: Callable[..., Any]
    delete: Callable[..., Any]


def place(create: Callable[..., Any], delete: Callable[..., Any]) -> Place:
    find = create(
        "find", sides={"h": ["A", "B"], "i": ["x", "y"]}, goal="find", control=SHOWN,
        guardrails={"left": {"worse_by": 0.1}}, seed=1,
    )  # fmt: skip
    sides = {"seg": ["p", "q"], "h": ["A", "B"]}
    given = create("given", sides=sides, goal="find", given=["seg"], seed=1)
    return Place(find, given, find.ask().id, create, delete)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Place, Place]]:
    folder = tmp_path_factory.mktemp("parity")
    storage = folder / "near.db"

    def create(*args: Any, **options: Any) -> Any:
        return rank1.Study.create(*args, storage=storage, **options)  # type: ignore[misc]

    def delete(*args: Any, **options: Any) -> Any:
        return rank1.Study.delete(*args, storage=storage, **options)  # type: ignore[misc]

    with served(folder) as service, rank1.Client(service.url, service.token, PATIENCE) as client:
        near = place(create, delete)
        yield near, place(client.create, client.delete)
        near.find.close()


BAD: dict[str, Callable[[Place], Any]] = {
    "tell: unknown id": lambda at: at.find.tell("17", 1.0),
    "tell: long id": lambda at: at.find.tell("x" * 300, 1.0),
    "tell: id isn't text": lambda at: at.find.tell(5, 1.0),
    "tell: id is None": lambda at: at.find.tell(None, 1.0),
    "tell: text": lambda at: at.find.tell(at.id, "x"),
    "tell: text of a number": lambda at: at.find.tell(at.id, "1"),
    "tell: None": lambda at: at.find.tell(at.id, None),
    "tell: list": lambda at: at.find.tell(at.id, [1.0]),
    "tell: array": lambda at: at.find.tell(at.id, np.ones(2)),
    "tell: NaN": lambda at: at.find.tell(at.id, math.nan),
    "tell: infinite": lambda at: at.find.tell(at.id, -math.inf),
    "tell: out of range": lambda at: at.find.tell(at.id, 7.0),
    "tell: unknown guardrail": lambda at: at.find.tell(at.id, 1.0, {"zz": 1}),
    "tell: guardrail out of range": lambda at: at.find.tell(at.id, 1.0, {"left": 3}),
    "tell: guardrail is NaN": lambda at: at.find.tell(at.id, 1.0, {"left": math.nan}),
    "tell: guardrail is text": lambda at: at.find.tell(at.id, 1.0, {"left": "x"}),
    "tell: guardrails are a list": lambda at: at.find.tell(at.id, 1.0, [1]),
    "tell_many: too short": lambda at: at.find.tell_many([(at.id,)]),
    "tell_many: not a report": lambda at: at.find.tell_many([5]),
    "cancel: unknown id": lambda at: at.find.cancel("17"),
    "cancel: id isn't text": lambda at: at.find.cancel(5),
    "ask: count 0": lambda at: at.find.ask(count=0),
    "ask: count is text": lambda at: at.find.ask(count="x"),
    "ask: count isn't whole": lambda at: at.find.ask(count=1.5),
    "ask: too many": lambda at: at.find.ask(count=10**6),
    "ask: empty unit": lambda at: at.find.ask(unit=""),
    "ask: long unit": lambda at: at.find.ask(unit="u" * 300),
    "ask: unit isn't text": lambda at: at.find.ask(unit=5),
    "ask: a unit and a count": lambda at: at.find.ask(count=2, unit="u"),
    "ask: data is a list": lambda at: at.find.ask(data=[1]),
    "ask: data is text": lambda at: at.find.ask(data="x"),
    "ask: data is a set": lambda at: at.find.ask(data={1, 2}),
    "ask: data is too long": lambda at: at.find.ask(data={"x": "y" * 5000}),
    "ask: data has NaN": lambda at: at.find.ask(data={"x": math.nan}),
    "ask: no side is given": lambda at: at.find.ask(given={"h": "A"}),
    "ask: nothing given": lambda at: at.given.ask(),
    "ask: unknown segment": lambda at: at.given.ask(given={"seg": "zz"}),
    "ask: given is text": lambda at: at.given.ask(given="p"),
    "ask: segment isn't text": lambda at: at.given.ask(given={"seg": 5}),
    "ask: long key": lambda at: at.find.ask(key="k" * 300),
    "ask: empty key": lambda at: at.find.ask(key=""),
    "ask: key isn't text": lambda at: at.find.ask(key=5),
    "record: unknown version": lambda at: at.find.record("u", 9, SHOWN),
    "record: version is text": lambda at: at.find.record("u", "x", SHOWN),
    "record: version is None": lambda at: at.find.record("u", None, SHOWN),
    "record: a side is missing": lambda at: at.find.record("u", 0, {"h": "A"}),
    "record: unknown level": lambda at: at.find.record("u", 0, {"h": "A", "i": "zz"}),
    "record: levels are text": lambda at: at.find.record("u", 0, "Ax"),
    "record: levels are None": lambda at: at.find.record("u", 0, None),
    "record: reward is text": lambda at: at.find.record("u", 0, SHOWN, "x"),
    "record: reward is NaN": lambda at: at.find.record("u", 0, SHOWN, math.nan),
    "record: guardrail without reward": lambda at: at.find.record("u", 0, SHOWN, None, {"left": 1}),
    "record: empty unit": lambda at: at.find.record("", 0, SHOWN),
    "record: unit isn't text": lambda at: at.find.record(5, 0, SHOWN),
    "record_many: too short": lambda at: at.find.record_many([("u",)]),
    "record_many: unknown name": lambda at: at.find.record_many([{"unit": "u", "zz": 1}]),
    "record_many: not a record": lambda at: at.find.record_many([5]),
    "reward: unknown unit": lambda at: at.find.reward("nobody", 1.0),
    "reward: out of range": lambda at: at.find.reward("nobody", 7.0),
    "reward: text": lambda at: at.find.reward("nobody", "x"),
    "reward: unit isn't text": lambda at: at.find.reward(5, 1.0),
    "reward_many: too short": lambda at: at.find.reward_many([("u",)]),
    "revise: unknown side": lambda at: at.find.revise(add={"zz": ["a"]}),
    "revise: known level": lambda at: at.find.revise(add={"h": ["A"]}),
    "revise: the control": lambda at: at.find.revise(retire={"h": ["A"]}),
    "revise: text": lambda at: at.given.revise(add_rows="ab"),
    "revise: text in a side": lambda at: at.given.revise(add={"h": "ab"}),
    "revise: no mapping": lambda at: at.given.revise(add=["h"]),
    "revise: level isn't text": lambda at: at.given.revise(add={"h": [5]}),
    "personalise: unknown side": lambda at: at.find.personalise("zz", by="h"),
    "personalise: a given side": lambda at: at.given.personalise("seg", by="h"),
    "forecast: negative": lambda at: at.find.forecast(per_day=-1),
    "forecast: text": lambda at: at.find.forecast(per_day="x"),
    "fit: B too small": lambda at: at.find.fit(B=5),
    "fit: B is text": lambda at: at.find.fit(B="x"),
    "fit: negative seed": lambda at: at.find.fit(B=19, seed=-1),
    "events: limit 0": lambda at: at.find.events(limit=0),
    "events: limit is text": lambda at: at.find.events(limit="x"),
    "events: unknown kind": lambda at: at.find.events(kinds=["zz"]),
    "import: unknown level": lambda at: at.find.import_history([("zz", "x", 1.0)]),
    "import: too short": lambda at: at.find.import_history([("x", 1.0)]),
    "import: not a line": lambda at: at.find.import_history([5]),
    "import: no lines": lambda at: at.find.import_history(5),
    "import: out of range": lambda at: at.find.import_history([("A", "x", 7.0)]),
    "import: text": lambda at: at.find.import_history([("A", "x", "one")]),
    "import: nothing": lambda at: at.find.import_history([]),
    "import: negative count": lambda at: at.find.import_history(
        [{**SHOWN, "reward": 1.0, "count": -1}]
    ),
    "import: more successes than trials": lambda at: at.find.import_history(
        [{**SHOWN, "successes": 3, "trials": 2}]
    ),
    "import: no reward": lambda at: at.find.import_history([SHOWN]),
    "import: columns of lines": lambda at: at.find.import_history(
        [("A", "x", 1.0)], columns={"reward": "r"}
    ),
    "import: no file": lambda at: at.find.import_history("nowhere.csv"),
    "replay: unknown policy": lambda at: at.find.replay("zz"),
    "export: unknown format": lambda at: at.find.export("log.txt"),
    "note: empty": lambda at: at.find.note(""),
    "note: long": lambda at: at.find.note("x" * 300),
    "note: not text": lambda at: at.find.note(5),
    "note: long key": lambda at: at.find.note("x", key="k" * 300),
    "forget_unit: empty": lambda at: at.find.forget_unit(""),
    "forget_unit: not text": lambda at: at.find.forget_unit(5),
    "delete: not confirmed": lambda at: at.delete("find", confirm="fin"),
    "delete: unknown": lambda at: at.delete("nowhere", confirm="nowhere"),
    "create: exists": lambda at: at.create("find", ["a"], ["x"]),
    "create: empty name": lambda at: at.create("", ["a"], ["x"]),
    "create: name isn't text": lambda at: at.create(5, ["a"], ["x"]),
    "create: no sides": lambda at: at.create("new"),
    "create: unknown option": lambda at: at.create("new", ["a"], ["x"], zz=1),
    "create: rows are text": lambda at: at.create("new", "ab", ["x"]),
    "create: sides and rows": lambda at: at.create("new", ["a"], ["x"], sides={"h": ["A"]}),
}

#: Values that no option accepts, or only some do.
VALUES = (3, -1, 0.5, math.nan, "x", "3", True, [1], [[1]], ["h"], {"h": "zz"}, {"h": {"x": 1}})
OPTIONS = (
    "sides", "goal", "policy", "horizon", "reward_window", "on_expiry", "default_reward",
    "reward_range", "confidence", "tolerance", "seed", "forgetting", "given", "new_levels",
    "control", "floor", "holdout", "min_lift", "guardrails", "repeat",
)  # fmt: skip


def outcome(call: Callable[[Place], Any], at: Place) -> tuple[type[Exception] | None, str | None]:
    """Return the class and the argument of the error that a call raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call(at)
    except Exception as error:
        return type(error), getattr(error, "argument", None)
    return None, None


@pytest.mark.parametrize("name", BAD)
def test_bad_calls(both: tuple[Place, Place], name: str) -> None:
    near, far = (outcome(BAD[name], at) for at in both)
    if near[0] is TypeError:  # Python's own, about the names of arguments
        assert far[0] is rank1.InputTypeError
        return
    assert near[0] is not None
    assert issubclass(near[0], rank1.Rank1Error)
    assert far == near


@pytest.mark.parametrize("goal", ["earn", "find"])
@pytest.mark.parametrize("option", OPTIONS)
def test_bad_options(both: tuple[Place, Place], option: str, goal: str) -> None:
    refused = 0
    for place, value in enumerate(VALUES):
        options = {"sides": {"h": ["A", "B"]}, "goal": goal, option: value}

        def create(at: Place, name: str = f"{option} {goal} {place}", told: Any = options) -> Any:
            return at.create(name, **told)

        near, far = (outcome(create, at) for at in both)
        assert far == near, value
        refused += near[0] is not None
    assert refused > 4


def test_good_calls_that_need_care(both: tuple[Place, Place], tmp_path: Path) -> None:
    """What a `Study` accepts, a study on a service accepts, and both count the same."""
    table = tmp_path / "counts.csv"
    table.write_text("h,i,successes,trials\nA,x,3,10\nB,y,1,4\n")
    again = tmp_path / "again.jsonl"
    again.write_text('{"h": "A", "i": "y", "reward": 1, "count": 7}\n{"h": "A", "i": "x"}\n')
    found = []
    for at in both:
        study = at.create("good", sides={"h": ["A", "B"], "i": ["x", "y"]}, goal="find", seed=1)
        assert study.revise() == 0
        study.record("true", 0, SHOWN, True)
        study.record_many(
            [
                {"unit": "dict", "version": 0, "levels": SHOWN, "reward": np.float32(0.5)},
                ("text", 0, SHOWN, "x"),
                ("later", 0, SHOWN),
            ]
        )
        study.reward_many([{"unit": "later", "reward": np.int64(1)}])
        study.note("new prices", key="k")
        study.note("new prices", key="k")
        with pytest.raises(rank1.ConflictError, match="something else"):
            study.note("old prices", key="k")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the history isn't evidence
            imported = [study.import_history(table), study.import_history(again)]
            imported += [study.import_history(again)]
            imported += [study.import_history([{**SHOWN, "reward": 0.0, "count": 5}])]
        assert [(each.rewards, each.skipped) for each in imported] == [
            (14, 0), (7, 1), (7, 1), (5, 0)
        ]  # fmt: skip
        assert [each.already_imported for each in imported] == [False, False, True, False]
        study.export(tmp_path / "own.jsonl")
        with pytest.raises(rank1.InputError, match="counts it already") as caught:
            study.import_history(tmp_path / "own.jsonl")
        assert caught.value.argument == "id"
        assert study.forget_unit("dict") == 1
        assert study.forget_unit("dict") == 0
        kinds = [each["kind"] for each in study.events(limit=100)]
        found.append((kinds.count("noted"), study.counts(), study.best().counts.tolist()))
        at.delete("good", confirm="good")
        with pytest.raises(rank1.UnknownStudyError):
            at.delete("good", confirm="good")
    assert found[0] == found[1]
    assert found[0][0] == 1
