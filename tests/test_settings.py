"""Policies from the names that people write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rank1
from rank1.settings import parse_policy


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
