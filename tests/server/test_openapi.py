"""Requests that the API description allows, and many that it doesn't, cause no server error."""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its dependencies use deprecated functions
    import requests  # noqa: F401 (schemathesis imports it later, when its warnings are errors)
    import schemathesis
    from schemathesis.checks import not_a_server_error
    from schemathesis.generation.modes import GenerationMode
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
    )

from tests.server.support import GRID, PATIENCE, Served

CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance]
HOW = settings(
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def test_every_answer_is_described(service: Served) -> None:
    described = service.call("/openapi.json")[1]
    assert described["servers"][0]["url"] == "."  # so that it works behind a proxy
    ids = []
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            ids.append(operation["operationId"])
            done = next(
                operation["responses"][code] for code in operation["responses"] if code < "3"
            )
            if not path.endswith(("/export", "/report")):
                assert done["content"]["application/json"]["schema"]["$ref"], (method, path)
            for code in (
                "400",
                "401",
                "403",
                "404",
                "408",
                "409",
                "413",
                "422",
                "429",
                "500",
                "503",
            ):
                problem = operation["responses"][code]["content"]["application/problem+json"]
                assert problem["schema"] == {"$ref": "#/components/schemas/Problem"}
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch("[a-z]+(_[a-z]+)*", id) for id in ids), ids
    named = {f"{each}Results" for each in ("Ask", "Tell", "Record", "Reward")}
    assert named < set(described["components"]["schemas"])  # names in generated clients
    create = described["components"]["schemas"]["Create"]["properties"]
    assert create["goal"]["enum"] == ["earn", "find"]


@pytest.mark.parametrize("examples", [1, pytest.param(60, marks=pytest.mark.validate)])
def test_no_request_is_a_server_error(service: Served, examples: int) -> None:
    fuzzed = f"fuzzed-{examples}"
    assert service.call("/v1/studies", {"name": fuzzed, **GRID, "seed": 1})[0] == 201
    headers = {"Authorization": f"Bearer {service.token}"}
    described = schemathesis.openapi.from_url(f"{service.url}/openapi.json")
    seen: dict[str, set[int]] = {}

    def send(case: Any) -> None:
        names: list[str | None] = [None]
        if "name" in (case.path_parameters or {}):
            names.append(fuzzed)  # else every request would name an unknown study
        for name in names:
            if name is not None:
                case.path_parameters["name"] = name
            answer = case.call(headers=headers, timeout=PATIENCE)
            case.validate_response(answer, checks=CHECKS, headers=headers)
            seen.setdefault(case.operation.label, set()).add(answer.status_code)

    for found in described.get_all_operations():
        operation: Any = found.ok()
        for mode in GenerationMode:
            strategy = operation.as_strategy(generation_mode=mode)
            settings(HOW, max_examples=examples)(given(case=strategy)(send))()
    assert len(seen) == len(list(described.get_all_operations()))
    assert not [label for label, codes in seen.items() if max(codes) >= 500]
    if examples > 3:  # few of them are valid by chance
        assert 201 in seen["POST /v1/studies"]
    assert 422 in seen["POST /v1/studies"]
    assert 200 in seen["GET /v1/studies/{name}/best"]
