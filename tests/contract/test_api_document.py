"""The API does what its OpenAPI document says, for requests of every shape."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import load_all_checks
from schemathesis.specs.openapi.checks import positive_data_acceptance

from schemas.codes import CODES
from schemas.problems import Problem
from tests.support.door import Entrance, entrance
from tests.support.told import Told
from tests.support.words import e, i

load_all_checks()
EXAMPLES = 20


def decides(asked: Any) -> list[Any]:
    """An owner that admits everything; pool self is full."""
    match asked:
        case i.OperationSubmitted():
            return [Told(asked.idempotency_key, tenant=asked.tenant, user=asked.user).admitted()]
        case i.JoinRequested(pool="self"):
            named = {"member": asked.member, "member_epoch": asked.member_epoch}
            return [e.JoinRefused(**named, code="pool-full")]
        case _:
            return []


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Entrance]:
    with entrance(tmp_path_factory.mktemp("door")) as made:
        made.sender.owner = decides
        yield made


def who(case: Any) -> str:
    """Whose key may ask that."""
    if case.method == "GET" and not case.path.endswith("/deliveries"):
        return "operator"
    said = {"members", "attempts"} & set(case.operation.definition.raw.get("tags", ()))
    return "worker" if said else "acme"


def check(case: Any, door: Entrance) -> None:
    key = door.keys[who(case)]
    response = case.call(headers={"Authorization": f"Bearer {key}"})
    # A cursor, key or position may be a string and still none that anybody was given.
    case.validate_response(response, excluded_checks=[positive_data_acceptance])
    assert "evenhand-position" in response.headers
    if response.status_code >= 400 and case.path.startswith("/v1"):
        problem = Problem.model_validate(response.json())
        assert problem.status == response.status_code
        assert problem.status in (CODES[problem.code].status, 405)


def test_every_route_keeps_to_the_document(door: Entrance) -> None:
    document: Any = schemathesis.openapi.from_asgi("/openapi.json", door.app)
    checked = set()
    for found in document.get_all_operations():
        operation = found.ok()

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
            database=None,
        )
        @given(case=operation.as_strategy())
        def holds(case: Any) -> None:
            check(case, door)

        holds()
        checked.add((operation.method.upper(), operation.path))
    documented = door.app.openapi()["paths"]
    assert checked == {(m.upper(), path) for path, item in documented.items() for m in item}


def test_the_document_is_openapi_3_1_and_names_no_completion_time(door: Entrance) -> None:
    document = door.app.openapi()
    assert document["openapi"].startswith("3.1")
    submitted = document["components"]["schemas"]["Submitted"]["properties"]
    assert set(submitted) == {"operation", "state", "place", "input"}
