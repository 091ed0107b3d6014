"""Whatever the description of the API allows, and much that it doesn't: no server error."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what it imports uses what is deprecated
    import schemathesis
    from schemathesis.checks import not_a_server_error
    from schemathesis.generation.modes import GenerationMode
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
    )

from tests.server.support import GRID, Served

CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance]
HOW = settings(
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("examples", [3, pytest.param(60, marks=pytest.mark.validate)])
def test_no_request_is_a_server_error(service: Served, examples: int) -> None:
    fuzzed = f"fuzzed-{examples}"
    assert service.call("/v1/studies", {"name": fuzzed, **GRID, "seed": 1})[0] == 201
    headers = {"Authorization": f"Bearer {service.token}"}
    described = schemathesis.openapi.from_url(f"{service.url}/openapi.json")
    seen: dict[str, set[int]] = {}

    def send(case: Any) -> None:
        names: list[str | None] = [None]
        if "name" in (case.path_parameters or {}):
            names.append(fuzzed)  # else every request would be of a study that isn't there
        for name in names:
            if name is not None:
                case.path_parameters["name"] = name
            answer = case.call(headers=headers)
            case.validate_response(answer, checks=CHECKS, headers=headers)
            seen.setdefault(case.operation.label, set()).add(answer.status_code)

    for found in described.get_all_operations():
        operation: Any = found.ok()
        for mode in GenerationMode:
            strategy = operation.as_strategy(generation_mode=mode)
            settings(HOW, max_examples=examples)(given(case=strategy)(send))()
    assert len(seen) >= 18
    assert not [label for label, codes in seen.items() if max(codes) >= 500]
    if examples > 3:  # few of them are right by chance
        assert 201 in seen["POST /v1/studies"]
    assert 422 in seen["POST /v1/studies"]
    assert 200 in seen["GET /v1/studies/{name}/best"]
