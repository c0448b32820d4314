"""Turns over HTTP: what a worker's key may do for the tenant of a run that it holds."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from api.auth import add_key
from schemas.bodies import Role
from tests.support.door import Entrance
from tests.support.speaking import ABOUT_ATTEMPTS, member, speaks, workplace
from tests.support.told import START_MS, Told
from tests.support.words import e

TURN: dict[str, Any] = {
    "pool": "self",
    "domain": "d",
    "prompt_tokens": 9,
    "output_tokens_max": 3,
    "start_within_ms": 60_000,
    "parent": Told("run").id.hex(),
}


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Entrance]:
    """A run of `acme` that member `me` of key `worker` has started."""
    with workplace(tmp_path) as made:
        run = Told("run", member=member(made), sequence=2)
        admitted = msgspec.structs.replace(run.admitted(), turns_max=3)
        claimed, started = run.started(START_MS + 200)
        claimed = msgspec.structs.replace(claimed, expires_ms=START_MS + 9_000)
        made.tell((0, admitted), run.granted(), claimed, started, inputs=[(0, 0, 1)])
        yield made


def join(door: Entrance, key: str, tenant: str | None = "acme") -> Any:
    body = {"pool": "self", "places": 4, "member": "me", "tenant": tenant}
    return door.ask("POST", "/v1/members", key=key, json=body)


def submit(door: Entrance, key: str = "worker", **fields: Any) -> Any:
    body = {**TURN, "member": member(door, key), **fields}
    headers = {"Idempotency-Key": '"turn-1"', "Evenhand-Wait-Admitted": "0"}
    return door.ask("POST", "/v1/operations", key=key, json=body, headers=headers)


def told_turn(door: Entrance) -> Told:
    """A turn that was submitted to member `me` of the worker's key, and granted to it."""
    turn = Told("turn", member=member(door), sequence=3)
    more = {"pool": "self", "member": member(door), "parent": Told("run").id}
    admitted = msgspec.structs.replace(turn.admitted(), **more)
    door.tell((0, admitted), turn.granted(), inputs=[(0, 0, 1)])
    return turn


def test_who_holds_a_run_joins_pool_self_for_its_tenant(door: Entrance) -> None:
    assert join(door, "worker").status_code == 202
    assert [word.tenant for word in door.sender.sent] == ["acme"]


@pytest.mark.parametrize(
    ("key", "tenant"),
    [("worker", "bolt"), ("worker", None), ("colleague", "acme"), ("bolt", "acme")],
)
def test_nobody_else_joins_for_that_tenant(door: Entrance, key: str, tenant: str | None) -> None:
    assert join(door, key, tenant).json()["code"] == "forbidden"
    assert door.sender.sent == []


def test_a_tenant_named_in_a_workers_key_gives_it_nothing(door: Entrance) -> None:
    door.keys["named"] = add_key(door.keys_path, role=Role.WORKER, tenant="acme", user="u")
    assert join(door, "named").json()["code"] == "forbidden"
    run = f"/v1/operations/{Told('run').id.hex()}:cancel"
    assert door.ask("POST", run, key="named").json()["code"] == "not-found"
    assert door.sender.sent == []


def test_a_turn_belongs_to_tenant_and_user_of_the_run(door: Entrance) -> None:
    assert submit(door).status_code == 202
    (word,) = door.sender.sent
    assert (word.tenant, word.user, word.parent) == ("acme", "u", Told("run").id)


@pytest.mark.parametrize(
    "fields",
    [{"pool": "p"}, {"parent": None}, {"parent": "00" * 16}, {"member": "key_other_me"}],
)
def test_a_workers_key_submits_nothing_but_turns_of_its_own(
    door: Entrance, fields: dict[str, Any]
) -> None:
    assert submit(door, **fields).json()["code"] == "forbidden"
    assert door.sender.sent == []


def test_a_colleague_takes_no_turns_of_the_run(door: Entrance) -> None:
    assert submit(door, "colleague").json()["code"] == "forbidden"


def test_a_run_that_has_ended_takes_no_more_turns(door: Entrance) -> None:
    run = Told("run", member=member(door), sequence=2)
    door.tell(e.ResultRecorded(**run.attempt, outcome="success", late=False))
    assert submit(door).json()["code"] == "forbidden"
    assert join(door, "worker").json()["code"] == "forbidden"


@pytest.mark.parametrize("what", ABOUT_ATTEMPTS)
def test_only_the_key_that_took_the_turn_speaks_of_it(door: Entrance, what: str) -> None:
    turn = told_turn(door)
    for key, found in (("worker", "acme"), ("colleague", None)):
        path, body = ABOUT_ATTEMPTS[what](speaks(door, key, operation=turn.id.hex()))
        told = door.ask("POST", path, key=key, json=body)
        assert (told.json().get("code") == "not-found") is (found is None), told.text
    assert {word.tenant for word in door.sender.sent} == {"acme"}


def test_only_the_key_that_took_the_turn_cancels_it(door: Entrance) -> None:
    turn = told_turn(door)
    path = f"/v1/operations/{turn.id.hex()}:cancel"
    assert door.ask("POST", path, key="colleague").json()["code"] == "not-found"
    assert door.ask("POST", path, key="worker").status_code == 202
    run = f"/v1/operations/{Told('run').id.hex()}:cancel"
    assert door.ask("POST", run, key="worker").json()["code"] == "not-found"
