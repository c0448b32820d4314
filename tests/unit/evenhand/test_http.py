"""Requests over HTTP: one key over all repeats, bounded, and each problem its own exception."""

import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from evenhand import AsyncClient, Client, EvenhandError, Unreachable, errors
from evenhand._http import again, quoted
from tests.support.answering import Answering, answering
from tests.support.twins import AsyncTwin, SyncTwin, Twin

INTENT: dict[str, Any] = {
    "pool": "p",
    "domain": "d",
    "prompt_tokens": 1,
    "output_tokens_max": 2,
    "start_within_ms": 3,
    "idempotency_key": "invoice 17",
}
ADMITTED = (202, {}, {"operation": "ab", "state": "admitted", "place": 1, "later_field": 1})
Make = Callable[[dict[str, Any], dict[str, Any]], Twin]


def problem(
    code: str, status: int, *, after_s: int | None = None, **fields: Any
) -> tuple[int, dict[str, str], Any]:
    body = {
        "type": f"urn:evenhand:problem:{code}",
        "title": "a title",
        "status": status,
        "detail": "a detail",
        "instance": "/v1/operations",
        "code": code,
        **fields,
    }
    return status, {} if after_s is None else {"Retry-After": str(after_s)}, body


def asking(make: Make, server: Answering, *question: str, retry_s: float = 5.0) -> Any:
    """A submission, or another call of the client with its arguments."""
    door = {"url": server.url, "api_key": "eh_k_s", "retry_s": retry_s}
    twin = make(door, door)
    try:
        return twin.call(*question) if question else twin.call("submit", **INTENT)
    finally:
        twin.close()


@pytest.fixture(params=[SyncTwin, AsyncTwin])
def make(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_a_submission_has_its_key_its_credential_and_only_what_was_said(make: Make) -> None:
    with answering(ADMITTED) as server:
        told = asking(make, server)
    (asked,) = server.asked
    assert (told.operation, told.state) == ("ab", "admitted")
    assert (asked.method, asked.path) == ("POST", "/v1/operations")
    assert asked.headers["Authorization"] == "Bearer eh_k_s"
    assert asked.headers["Idempotency-Key"] == '"invoice 17"'
    assert asked.body == {name: INTENT[name] for name in INTENT if name != "idempotency_key"}


def test_a_temporary_refusal_is_repeated_with_the_same_key(make: Make) -> None:
    full = problem("tenant-queue-full", 429, after_s=0)
    with answering(full, full, ADMITTED) as server:
        assert asking(make, server).state == "admitted"
    assert {asked.headers["Idempotency-Key"] for asked in server.asked} == {'"invoice 17"'}
    assert len(server.asked) == 3


def test_a_refusal_for_good_is_raised_at_once(make: Make) -> None:
    never = problem("never-fits", 413, operation="ab")
    with answering(never) as server, pytest.raises(errors.NeverFits, match="a detail") as refused:
        asking(make, server)
    assert refused.value.operation == "ab"
    assert len(server.asked) == 1


def test_a_refusal_tells_when_to_come_again_and_which_budget_it_was(make: Make) -> None:
    later = problem(
        "budget-exhausted",
        429,
        after_s=3600,
        retry_at="2026-11-30T10:00:00.000Z",
        budget={"domain": "gpt", "level": "tenant", "dimension": "tokens"},
    )
    with answering(later) as server, pytest.raises(errors.BudgetExhausted) as refused:
        asking(make, server)
    assert len(server.asked) == 1, "Expected no repeat, since an hour is beyond the bound"
    assert refused.value.retry_at == datetime(2026, 11, 30, 10, tzinfo=UTC)
    assert refused.value.retry_after_s == 3600
    assert refused.value.budget is not None
    assert refused.value.budget.dimension == "tokens"


def test_repeats_end_with_their_bound_in_time(make: Make) -> None:
    with answering(problem("no-owner", 503)) as server, pytest.raises(errors.NoOwner):
        asking(make, server, retry_s=0.05)
    assert server.asked


@pytest.mark.parametrize("question", ["get", "wait_result"])
def test_questions_are_repeated_within_the_same_bound(make: Make, question: str) -> None:
    with answering(problem("behind", 503)) as server:
        begun = time.monotonic()
        with pytest.raises(errors.Behind):
            asking(make, server, question, "ab" * 16, retry_s=0.05)
        assert time.monotonic() - begun < 10, "Expected the client's own bound, not the default"


def test_nobody_there_is_unreachable(make: Make) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        nobody = Answering(url, [])
        with pytest.raises(Unreachable):
            asking(make, nobody, retry_s=0.05)


def test_an_address_that_is_none_is_not_tried_again(make: Make) -> None:
    with pytest.raises(EvenhandError, match="http://") as refused:
        asking(make, Answering("nonsense", []))
    assert not isinstance(refused.value, Unreachable)


def test_an_answer_of_somebody_else_is_not_taken_for_ours(make: Make) -> None:
    page = (502, {}, b"<html>a proxy</html>")
    with answering(page) as server, pytest.raises(Unreachable, match="502"):
        asking(make, server, retry_s=0.05)
    other = (418, {}, b"<html>a teapot</html>")
    with answering(other) as server, pytest.raises(EvenhandError, match="418"):
        asking(make, server)


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (errors.TenantQueueFull(retry_after_s=3), 3),
        (errors.TenantQueueFull(retry_after_s=60), False),
        (errors.TenantQueueFull(), True),
        (errors.IdempotencyInProgress(), True),
        (errors.NeverFits(), False),
        (Unreachable(), True),
        (ValueError(), False),
    ],
)
def test_only_what_time_can_help_is_tried_again(error: Exception, answer: float) -> None:
    assert again(30, error) == answer


@pytest.mark.parametrize(
    ("key", "header"),
    [("a", '"a"'), ('say "hi"', '"say \\"hi\\""'), ("b\\c", '"b\\\\c"')],
)
def test_keys_are_structured_field_strings_where_they_can_be(key: str, header: str) -> None:
    assert quoted(key) == header


def test_a_key_that_no_header_can_carry_is_refused() -> None:
    with pytest.raises(errors.InvalidField):
        quoted("ключ")


def test_the_environment_says_where_the_api_is(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(ADMITTED) as server:
        monkeypatch.setenv("EVENHAND_API_URL", server.url)
        monkeypatch.setenv("EVENHAND_API_KEY", "eh_from_env")
        with Client() as client:
            client.submit(**INTENT)
    assert server.asked[0].headers["Authorization"] == "Bearer eh_from_env"


def test_topics_need_to_know_whose_work_it_is() -> None:
    from evenhand import Kafka  # noqa: PLC0415

    for kind in (Client, AsyncClient):
        with pytest.raises(ValueError, match="tenant and user"):
            kind(url="http://127.0.0.1:1", via=Kafka())
