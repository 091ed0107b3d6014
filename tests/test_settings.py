"""Policies from the names that people write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rank1
from rank1.policies import POLICIES
from rank1.settings import parse_policy, settings_of


@given(st.floats(1e-9, 1e9), st.floats(0.001, 0.99), st.sampled_from(["product", "log"]))
def test_a_label_is_read_as_the_policy_that_has_it(
    scale: float, epsilon: float, reward: str
) -> None:
    policy = rank1.LinUCB(confidence_scale=scale, reward=reward, epsilon=epsilon)
    assert parse_policy(policy.label) == policy


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("linucb:ridge", "settings of linucb must look like name=value, got 'ridge'"),
        ("linucb:ridge=1,ridge=2", "settings of linucb must set ridge once, got it twice"),
        ("linucb:rigde=1", "policy linucb has no setting 'rigde'; it takes confidence_scale, "),
        ("linucd", r"policy must be one of .*did you mean linucb\?"),
    ],
)
def test_what_cannot_be_read_is_told(text: str, message: str) -> None:
    with pytest.raises(rank1.InputError, match=message):
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

    with pytest.raises(rank1.InputTypeError, match=r"weights of mine must be a plain value, got a"):
        rank1.simulate(Mine(np.array([1.0, 2.0])), rank1.Bernoulli([0.5], [0.5]), 10)


def test_what_is_wrong_with_a_setting_says_whose_it_is() -> None:
    with pytest.raises(rank1.InputError, match=r"^policy ucb1: confidence must be .*got -1"):
        parse_policy("ucb1:confidence=-1")
