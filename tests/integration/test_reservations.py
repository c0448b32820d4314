"""Reservations over HTTP at a real cell: granted, settled, released, renewed, refused."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from api.auth import add_key
from evenhand.cli.development import TENANT, Development
from evenhand.dev.broker import Broker
from schemas.bodies import Role
from tests.support.developed import developed

CALL = {"domain": "default", "prompt_tokens": 90, "output_tokens_max": 30}
SLOTS = 16
"""Of the domain of `evenhand dev`."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cell")


@pytest.fixture(scope="module")
def cell(broker: Broker, home: Path) -> Iterator[Development]:
    with developed(broker, home) as made:
        yield made


class Caller:
    """A program with a queue of its own, which asks for permission."""

    def __init__(self, url: str, key: str) -> None:
        headers = {"Authorization": f"Bearer {key}"}
        self.api = httpx.Client(base_url=url, headers=headers, timeout=30)

    def reserve(self, key: str | None = None, wait_s: int | None = None, **more: Any) -> Any:
        headers = {"Idempotency-Key": key or uuid4().hex}
        if wait_s is not None:
            headers["Prefer"] = f"wait={wait_s}"
        return self.api.post("/v1/reservations", json={**CALL, **more}, headers=headers)

    def tell(self, verb: str, reservation: Any, **body: Any) -> Any:
        path = f"/v1/reservations/{reservation.json()['operation']}:{verb}"
        return self.api.post(path, json=body if verb == "settle" else None)


@pytest.fixture
def caller(cell: Development) -> Iterator[Caller]:
    made = Caller(cell.api_url, cell.tenant_key)
    yield made
    made.api.close()


def test_a_call_is_permitted_in_one_answer_and_settled_by_what_it_used(caller: Caller) -> None:
    asked = caller.reserve()
    assert asked.status_code == 201, asked.text
    told = asked.json()
    assert (told["state"], told["requests"], told["tokens"]) == ("started", 1, 120)
    assert told["send_within_ms"] >= 1_000
    settled = caller.tell(
        "settle", asked, prompt_tokens=80, output_tokens=7, send_delay_ms=3, result_ref="s3://a"
    ).json()
    assert (settled["state"], settled["settlement"]["tokens_actual"]) == ("succeeded", 87)
    again = caller.tell("settle", asked, prompt_tokens=80, output_tokens=7, result_ref="s3://a")
    assert again.json()["replayed"]
    other = caller.tell("settle", asked, outcome="terminal").json()
    assert other["code"] == "settlement-conflict"


def test_what_was_not_sent_is_released_and_nothing_follows(caller: Caller) -> None:
    asked = caller.reserve()
    released = caller.tell("release", asked).json()
    assert (released["state"], released["settlement"]) == ("cancelled", None)


def test_a_refused_call_is_not_tried_again_for_nobody(caller: Caller) -> None:
    asked = caller.reserve()
    told = caller.tell("settle", asked, outcome="retryable", prompt_tokens=1, output_tokens=0)
    assert told.json()["state"] == "cancelled"


def test_a_renewal_moves_the_end_of_the_lease(caller: Caller) -> None:
    asked = caller.reserve()
    time.sleep(0.05)
    renewed = caller.tell("renew", asked).json()
    assert renewed["expires_at"] > asked.json()["lease_expires_at"]
    caller.tell("release", asked)
    ended = caller.tell("renew", asked)
    assert (ended.status_code, ended.json()["code"]) == (412, "lease-not-held")


def test_the_same_key_is_the_same_reservation(caller: Caller) -> None:
    key = uuid4().hex
    first, again = caller.reserve(key), caller.reserve(key)
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.headers["idempotency-replayed"] == "true"
    assert again.json()["operation"] == first.json()["operation"]
    other = caller.reserve(key, prompt_tokens=91)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency-mismatch")
    caller.tell("settle", first, prompt_tokens=1, output_tokens=1)
    assert caller.reserve(key).json()["state"] == "succeeded"


def test_without_room_the_budget_that_binds_is_named_and_a_wait_gets_the_next_place(
    caller: Caller,
) -> None:
    held = [caller.reserve(wait_s=5) for _ in range(SLOTS)]
    assert {one.status_code for one in held} == {201}
    refused = caller.reserve(wait_s=0)
    assert (refused.status_code, refused.json()["code"]) == (429, "budget-exhausted")
    assert refused.json()["budget"]["dimension"] == "slots"
    assert not refused.json()["keep_key"]
    assert "retry-after" in refused.headers
    freed = threading.Timer(0.5, lambda: caller.tell("release", held[0]))
    freed.start()
    waited = caller.reserve(wait_s=10)
    freed.join()
    assert waited.status_code == 201
    assert waited.json()["send_within_ms"] >= 1_400
    for one in (*held[1:], waited):
        assert caller.tell("release", one).json()["state"] == "cancelled"


@pytest.mark.parametrize("verb", ["renew", "settle", "release"])
def test_another_keys_reservation_is_not_found(
    cell: Development, caller: Caller, home: Path, verb: str
) -> None:
    asked = caller.reserve()
    keys = home / "keys.jsonl"
    for tenant in ("other", TENANT):
        stranger = Caller(cell.api_url, add_key(keys, role=Role.TENANT, tenant=tenant, user="u"))
        assert stranger.tell(verb, asked).json()["code"] == "not-found"
        stranger.api.close()
    worker = Caller(cell.api_url, cell.worker_key)
    assert worker.tell(verb, asked).json()["code"] == "forbidden"
    assert worker.reserve().json()["code"] == "forbidden"
    worker.api.close()
    caller.tell("release", asked)


def test_a_key_and_true_fields_are_needed(caller: Caller) -> None:
    unnamed = caller.api.post("/v1/reservations", json=CALL)
    assert unnamed.json()["code"] == "idempotency-key-missing"
    assert caller.reserve(domain="nowhere").json()["code"] == "unknown-domain"
    assert caller.reserve(prompt_tokens=-1).json()["code"] == "invalid-field"
    assert caller.reserve(output_tokens_max=10**7).json()["code"] == "never-fits"
