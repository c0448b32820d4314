"""Operations at the door: what each answer says, and that it says so only when it is true."""

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from schemas.inputs import OperationSubmitted
from tests.support.door import SUBMIT, Entrance, entrance
from tests.support.told import START_MS, Told
from tests.support.words import e, i


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Entrance]:
    with entrance(tmp_path) as made:
        yield made


def admits(asked: Any) -> list[Any]:
    told = Told(asked.idempotency_key, tenant=asked.tenant, user=asked.user)
    return [told.admitted()]


def refuses(code: str, *, binds: bool, **more: Any) -> Any:
    return lambda asked: [Told(asked.idempotency_key).rejected(code, binds=binds, **more)]


def test_an_admitted_submission_tells_id_place_and_where_it_is_on_the_log(door: Entrance) -> None:
    door.sender.owner = admits
    reply = door.submit("k")
    assert reply.status_code == 202
    operation = Told("k").id.hex()
    assert reply.json() == {
        "operation": operation,
        "state": "admitted",
        "place": 1,
        "input": "submissions:0:0",
    }
    assert reply.headers["Location"] == f"/v1/operations/{operation}"
    assert reply.headers["Evenhand-Input"] == "submissions:0:0"
    assert reply.headers["Evenhand-Position"] == "main:1:1:0"


def test_with_the_owner_stopped_a_submission_is_received(door: Entrance) -> None:
    reply = door.submit("k")
    assert (reply.status_code, reply.json()["state"]) == (202, "received")


def test_a_submission_waits_no_longer_than_it_was_told_to(door: Entrance) -> None:
    reply = door.submit("k", headers={"Evenhand-Wait-Admitted": "0"})
    assert (reply.status_code, reply.json()["state"]) == (202, "received")


def test_tenant_and_user_come_from_the_credential(door: Entrance) -> None:
    door.submit("k", key="bolt")
    (word,) = door.sender.sent
    assert isinstance(word, OperationSubmitted)
    assert (word.tenant, word.user) == ("bolt", "u")


@pytest.mark.parametrize("field", ["tenant", "user", "prompt"])
def test_a_body_with_a_field_it_must_not_have_is_refused_and_not_sent(
    door: Entrance, field: str
) -> None:
    reply = door.submit("k", body={field: "bolt"})
    assert (reply.status_code, reply.json()["code"]) == (422, "invalid-field")
    assert reply.json()["errors"][0]["field"] == field
    assert door.sender.sent == []


@pytest.mark.parametrize("header", ["abc-1", '"abc-1"'])
def test_a_key_may_be_bare_or_a_structured_field(door: Entrance, header: str) -> None:
    door.submit(header)
    assert door.sender.sent[0].idempotency_key == "abc-1"


@pytest.mark.parametrize(
    ("header", "code"),
    [
        (None, "idempotency-key-missing"),
        ("", "idempotency-key-missing"),
        ('"open', "malformed"),
        ("k" * 201, "invalid-field"),
        ('""', "invalid-field"),
    ],
)
def test_a_key_that_is_none_is_refused(door: Entrance, header: str | None, code: str) -> None:
    headers = {} if header is None else {"Idempotency-Key": header}
    reply = door.ask("POST", "/v1/operations", json=SUBMIT, headers=headers)
    assert reply.json()["code"] == code
    assert door.sender.sent == []


def test_a_repeat_gets_the_operation_as_it_is_now_and_is_not_sent(door: Entrance) -> None:
    door.sender.owner = admits
    door.submit("k")
    told = Told("k")
    door.tell(told.granted(), *told.started(START_MS + 200))
    reply = door.submit("k")
    assert (reply.status_code, reply.json()["state"]) == (200, "started")
    assert reply.headers["Idempotency-Replayed"] == "true"
    assert len(door.sender.sent) == 1


def test_a_repeat_that_another_process_sent_first_is_a_repeat_too(door: Entrance) -> None:
    told = Told("k")

    def another_was_first(asked: Any) -> list[Any]:
        door.tell((0, told.admitted()), inputs=[(0, 1, 1)])
        return [e.DuplicateObserved(tenant="acme", operation=told.id, state="waiting")]

    door.sender.owner = another_was_first
    reply = door.submit("k")
    assert (reply.status_code, reply.json()["state"]) == (200, "waiting")
    assert reply.headers["Idempotency-Replayed"] == "true"


def test_of_two_requests_at_once_with_one_key_the_second_is_told_to_come_again(
    door: Entrance,
) -> None:
    headers = {
        "Idempotency-Key": "k",
        "Authorization": f"Bearer {door.keys['acme']}",
        "Evenhand-Wait-Admitted": "30000",
    }

    async def both() -> tuple[Any, Any]:
        async with door.client() as client:
            request = partial(client.post, "/v1/operations", json=SUBMIT, headers=headers)
            waiting = asyncio.create_task(request())
            await door.sender.wrote.wait()
            second = await request()
            door.journal.tell((0, Told("k").admitted()), inputs=[(0, 0, 1)])
            return await waiting, second

    first, second = asyncio.run(both())
    assert first.json()["state"] == "admitted"
    assert (second.status_code, second.json()["code"]) == (409, "idempotency-in-progress")
    assert (second.json()["keep_key"], second.headers["Retry-After"]) == (True, "1")
    assert len(door.sender.sent) == 1


def test_the_same_key_with_another_payload_is_a_mismatch(door: Entrance) -> None:
    door.sender.owner = admits
    door.submit("k")
    reply = door.submit("k", body={"prompt_tokens": 201})
    assert (reply.status_code, reply.json()["code"]) == (422, "idempotency-mismatch")


def test_the_deadline_is_no_part_of_the_payload(door: Entrance) -> None:
    door.sender.owner = admits
    door.submit("k")
    assert door.submit("k", body={"start_within_ms": 1}).status_code == 200


def test_a_full_queue_says_when_to_come_again_and_to_keep_the_key(door: Entrance) -> None:
    retry = {"retry_at_ms": START_MS + 5_000, "level": "tenant", "dimension": "count"}
    door.sender.owner = refuses("tenant-queue-full", binds=False, **retry)
    reply = door.submit("k")
    problem = reply.json()
    assert (reply.status_code, problem["code"]) == (429, "tenant-queue-full")
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.headers["Retry-After"] == "5"
    assert problem["retry_at"] == "2023-11-14T22:13:25.000Z"
    assert problem["keep_key"] is True
    assert problem["budget"] == {"domain": "d", "level": "tenant", "dimension": "count"}
    assert problem["operation"] == Told("k").id.hex()


def test_a_temporary_refusal_does_not_bind_the_key(door: Entrance) -> None:
    door.sender.owner = refuses("tenant-queue-full", binds=False)
    reply = door.submit("k")
    assert (reply.headers["Retry-After"], reply.json()["retry_at"]) == ("1", None)
    door.sender.owner = admits
    assert door.submit("k").json()["state"] == "admitted"


def test_what_never_fits_is_the_same_refusal_each_time_without_a_retry(door: Entrance) -> None:
    door.sender.owner = refuses("never-fits", binds=True, level="domain", dimension="tokens-1s")
    first, again = door.submit("k"), door.submit("k")
    for reply in (first, again):
        assert (reply.status_code, reply.json()["code"]) == (413, "never-fits")
        assert "Retry-After" not in reply.headers
        assert reply.json()["keep_key"] is False
    assert "Idempotency-Replayed" not in first.headers
    assert again.headers["Idempotency-Replayed"] == "true"
    assert len(door.sender.sent) == 1


def test_an_unconfirmed_write_is_no_acknowledgement(door: Entrance) -> None:
    door.sender.broken = True
    reply = door.submit("k")
    assert (reply.status_code, reply.json()["code"]) == (503, "not-written")
    assert reply.json()["keep_key"] is True
    assert "Retry-After" in reply.headers


def test_one_operation_is_told_whole(door: Entrance) -> None:
    door.sender.owner = admits
    told = Told("k")
    door.submit("k")
    door.tell(told.granted(), *told.started(START_MS + 200))
    door.tell(told.result(), told.settled())
    found = door.ask("GET", f"/v1/operations/{told.id.hex()}").json()
    assert found["state"] == "succeeded"
    assert (found["member"], found["used_prompt_tokens"]) == ("m1", 200)
    assert found["ended_at"] == "2023-11-14T22:13:20.004Z"


def test_a_refused_operation_tells_the_refusal_and_null_for_the_rest(door: Entrance) -> None:
    door.sender.owner = refuses("never-fits", binds=True)
    door.submit("k")
    found = door.ask("GET", f"/v1/operations/{Told('k').id.hex()}").json()
    assert (found["state"], found["code"], found["pool"]) == ("rejected", "never-fits", None)


def test_lists_are_filtered_and_paged(door: Entrance) -> None:
    told = [Told(f"k{n}", sequence=n) for n in range(5)]
    door.tell(*((n, one.admitted()) for n, one in enumerate(told)), inputs=[(0, 0, 5)])
    door.tell(told[0].granted())
    granted = door.ask("GET", "/v1/operations", params={"state": "granted"}).json()
    assert [item["operation"] for item in granted["items"]] == [told[0].id.hex()]
    assert door.ask("GET", "/v1/operations", params={"lane": "bulk"}).json()["items"] == []
    first = door.ask("GET", "/v1/operations", params={"limit": 3}).json()
    rest = door.ask("GET", "/v1/operations", params={"limit": 3, "cursor": first["next"]}).json()
    listed = [item["operation"] for item in first["items"] + rest["items"]]
    assert listed == [one.id.hex() for one in reversed(told)]
    assert rest["next"] is None


def test_a_cancellation_is_written_for_the_operations_own_tenant(door: Entrance) -> None:
    door.sender.owner = admits
    door.submit("k")
    door.sender.owner = None
    path = f"/v1/operations/{Told('k').id.hex()}:cancel"
    for key in ("acme", "operator"):
        reply = door.ask("POST", path, key=key, json={"reason": "enough"})
        assert (reply.status_code, reply.json()["state"]) == (202, "waiting")
        assert reply.headers["Evenhand-Input"].startswith("cancellations:0:")
    expected = i.CancellationRequested(tenant="acme", operation=Told("k").id, reason="enough")
    assert door.sender.sent[1:] == [expected, expected]


def test_a_cancellation_needs_no_body(door: Entrance) -> None:
    door.sender.owner = admits
    door.submit("k")
    door.sender.owner = None
    assert door.ask("POST", f"/v1/operations/{Told('k').id.hex()}:cancel").status_code == 202


def test_a_reader_can_demand_its_own_write(door: Entrance) -> None:
    written = door.submit("k").headers["Evenhand-Input"]
    headers = {"Evenhand-At-Least": written}
    behind = door.ask("GET", "/v1/tenants/acme", headers=headers)
    assert (behind.status_code, behind.json()["code"]) == (503, "behind")
    door.tell((0, Told("k").admitted()), inputs=[(0, 0, 1)])
    reply = door.ask("GET", "/v1/tenants/acme", headers=headers)
    assert reply.json()["admitted"] == 1
    headers = {"Evenhand-At-Least": reply.headers["Evenhand-Position"]}
    assert door.ask("GET", "/v1/tenants/acme", headers=headers).status_code == 200


@pytest.mark.parametrize("wanted", ["x", "submissions:0:x", "main:1:2", "other:1:2:0", "a:b:c:d"])
def test_a_demand_that_means_nothing_is_malformed(door: Entrance, wanted: str) -> None:
    reply = door.ask("GET", "/v1/tenants", headers={"Evenhand-At-Least": wanted})
    assert (reply.status_code, reply.json()["code"]) == (400, "malformed")
