"""Whatever the description of the API allows, and much that it doesn't: no server error."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what it imports uses what is deprecated
    import schemathesis
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
    )

from tests.server.support import GRID, Served

CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance]


@pytest.fixture(scope="module")
def described(service: Served) -> Any:
    assert service.call("/v1/studies", {"name": "fuzzed", **GRID, "seed": 1})[0] == 201
    return schemathesis.openapi.from_url(f"{service.url}/openapi.json")


schema = schemathesis.pytest.from_fixture("described")


@schema.parametrize()
@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
def test_no_request_is_a_server_error(case: Any, service: Served) -> None:
    headers = {"Authorization": f"Bearer {service.token}"}
    names = [None]
    if "name" in (case.path_parameters or {}):
        names.append("fuzzed")  # else every request would be of a study that isn't there
    for name in names:
        if name is not None:
            case.path_parameters["name"] = name
        answer = case.call(headers=headers)
        case.validate_response(answer, checks=CHECKS, headers=headers)
        assert answer.status_code < 500
