"""Policies from the names that users write."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rank1
from rank1.client.transport import error_of
from rank1.policies import POLICIES
from rank1.policies.averages import AveragesPolicy, AveragesState
from rank1.server.problem_details import problem_of
from rank1.settings import all_policies, parse_policy, settings_of


@given(st.floats(1e-9, 1e9), st.floats(0.001, 0.99), st.sampled_from(["product", "log"]))
def test_a_label_is_read_as_the_policy_that_has_it(
    scale: float, epsilon: float, reward: str
) -> None:
    policy = rank1.LinUCB(confidence_scale=scale, reward=reward, epsilon=epsilon)
    assert parse_policy(policy.label) == policy


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("linucb:ridge", "settings of linucb must be written as name=value, got 'ridge'"),
        ("linucb:ridge=1,ridge=2", "settings of linucb must be given once each, got 'ridge' twice"),
        (
            "linucb:rigde=1",
            r"policy linucb: setting must .*'rigde': did you mean ridge\?",
        ),
        ("linucd", r"policy must be one of .*did you mean linucb\?"),
        ("linucd:ridge=1", r"policy must be one of .*did you mean linucb\?"),
        ("no_such_module:Mine", "policy must be a class that can be imported, got 'no_such_mo"),
        ("rank1.policies:Mine", "policy must be a class that can be imported.*'Mine'"),
        ("json:dumps", "policy must be the name of a class derived from rank1.Policy, got 'json"),
        ("rank1.policies:UTS:gamma", "settings of rank1.policies:UTS must be written as name="),
    ],
)
def test_what_cannot_be_read_is_told(text: str, message: str) -> None:
    with pytest.raises((rank1.InputError, rank1.InputTypeError), match=message):
        parse_policy(text)


@pytest.mark.parametrize("name", POLICIES)
def test_an_array_is_no_setting(name: str) -> None:
    for setting in settings_of(POLICIES[name]):
        with pytest.raises(rank1.Rank1Error, match=rf"{setting} must be .*got array\("):
            POLICIES[name](**{setting: np.array([1.0, 2.0])})


def test_an_array_is_no_setting_of_ones_own_policy() -> None:
    @dataclass(frozen=True, eq=False)
    class Mine(rank1.Policy):
        name = "mine"
        weights: Any = 1.0

    with pytest.raises(rank1.InputTypeError, match=r"weights must be a plain value, .* of mine"):
        rank1.simulate(Mine(np.array([1.0, 2.0])), rank1.Bernoulli([0.5], [0.5]), 10)


class Own(rank1.Uniform):
    """A policy from another package."""

    name = "own"


def test_policies_of_other_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parse_policy(f"{__name__}:Own") == Own()
    assert parse_policy("rank1.policies:UCB1:confidence=2") == rank1.UCB1(confidence=2)
    assert "own" not in all_policies()
    point = EntryPoint("own", f"{__name__}:Own", "rank1.policies")
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: EntryPoints([point]))
    assert parse_policy("own") == Own()
    assert list(all_policies())[-1] == "own"
    with pytest.raises(rank1.InputError, match=r"got 'owm': did you mean own\?"):
        parse_policy("owm")
    broken = EntryPoint("broken", "no.such.module:Policy", "rank1.policies")
    both = EntryPoints([broken, point])
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: both)
    with pytest.warns(UserWarning, match="the policy broken is left out: .*no.such.module"):
        assert list(all_policies())[-1] == "own"


def test_an_error_of_a_setting_has_its_fields() -> None:
    with pytest.raises(rank1.InputError) as caught:
        parse_policy("ucb1:confidence=-1")
    error = caught.value
    assert (error.context, error.argument, error.value) == ("policy ucb1", "confidence", -1)


def test_what_is_wrong_with_a_setting_says_whose_it_is() -> None:
    with pytest.raises(rank1.InputError, match=r"^policy ucb1: confidence must be .*got -1"):
        parse_policy("ucb1:confidence=-1")


def test_an_error_about_a_setting_says_whose_setting_it_is() -> None:
    """Also over HTTP, where the body may have a field of the same name."""
    with pytest.raises(rank1.InputError) as raised:
        parse_policy("ucb1:confidence=-1")
    for error in (raised.value, error_of(422, problem_of(raised.value))):
        assert isinstance(error, rank1.InputError)
        assert (error.argument, error.part_of) == ("confidence", "policy")
        assert error.field == "policy.confidence"
        assert error.requirement == f"confidence must be {error.expected}"
        assert str(error) == str(raised.value)


def test_a_module_that_fails_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fails_when_imported.py").write_text("1 / 0\n")
    (tmp_path / "not_python.py").write_text("def (:\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(rank1.InputError, match=r"'fails_when_imported:Mine': ZeroDivisionError: d"):
        parse_policy("fails_when_imported:Mine")
    with pytest.raises(rank1.InputError, match=r"'not_python:Mine': SyntaxError: "):
        parse_policy("not_python:Mine")


class AlwaysFirst(AveragesState):
    def choose(self, rng: np.random.Generator) -> tuple[int, int]:
        return 0, 0


@dataclass(frozen=True)
class NoChecks(AveragesPolicy):
    name, state = "no_checks", AlwaysFirst
    epsilon: float = 0.1


class BadStart(NoChecks):
    name = "bad_start"

    def start(self, known: rank1.Known) -> Any:
        return known.amrs  # type: ignore[attr-defined]


def test_settings_of_a_policy_without_checks_are_numbers() -> None:
    with pytest.raises(rank1.InputTypeError) as seen:
        parse_policy(f"{__name__}:NoChecks:epsilon=x")
    assert (seen.value.argument, seen.value.value) == ("epsilon", "x")
    assert str(seen.value).endswith("NoChecks: epsilon must be a number, got 'x'")


def test_a_mistake_in_start_is_one_line(tmp_path: Path) -> None:
    found = r"^bad_start: start \(test_settings.py:\d+\): AttributeError: .* no attribute 'amrs'$"
    with pytest.raises(rank1.PolicyError, match=found):
        rank1.simulate(BadStart(), rank1.Product([[0.5, 0.6]]), n=10, runs=1)
    with pytest.raises(rank1.PolicyError, match=found) as seen:
        rank1.Study.create(
            "s", sides={"a": ["x", "y"]}, policy=f"{__name__}:BadStart", storage=tmp_path / "s.db"
        )
    assert problem_of(seen.value)["status"] == 422
