"""A body with many wrong values must not make as many errors: they'd block the event loop."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from rank1.server import models
from rank1.server.problem_details import validation_problem

MANY = 20_000
NUMBERS = {f"k{k}": 1 for k in range(MANY)}
TEXTS = {f"k{k}": "x" for k in range(MANY)}


@pytest.mark.parametrize(
    ("model", "body"),
    [
        (models.Tell, {"id": "x", "reward": 1, "guardrails": TEXTS}),
        (models.Ask, {"given": NUMBERS}),
        (models.AskMany, {"asks": None, "given": NUMBERS}),
        (models.Revise, {"add": {key: [1] for key in NUMBERS}}),
        (models.Create, {"name": "x", "rows": [1] * 4000, "control": NUMBERS, "guardrails": TEXTS}),
        (models.Create, {"name": "x", "given": [1] * MANY, "guardrails": {"a": TEXTS}}),
        (models.Import, {"rewards": [["a", "x", True]]}),
        (models.CreateToken, {"role": "reader", "studies": [1] * 1000, "origins": [1] * 100}),
    ],
)
def test_a_wrong_body_makes_few_errors(model: Any, body: Any) -> None:
    with pytest.raises(ValidationError) as found:
        model.model_validate(body)
    assert found.value.error_count() <= 5


def test_a_message_of_our_own_stands_alone() -> None:
    with pytest.raises(ValidationError) as found:
        models.Import.model_validate({"rewards": [["a", "x", True]]})
    problem = validation_problem(list(found.value.errors()), {})
    assert problem["remedy"] == "must be a number, not true or false"
