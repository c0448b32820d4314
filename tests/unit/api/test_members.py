"""Members over HTTP: who may join, what a sign of life tells, and what is heard."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api.auth import add_key
from schemas.bodies import Role
from tests.support.door import Entrance
from tests.support.speaking import granted, member, say, workplace
from tests.support.told import START_MS
from tests.support.words import e, i


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Entrance]:
    with workplace(tmp_path) as made:
        yield made


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/members/{}:heartbeat"),
        ("DELETE", "/v1/members/{}"),
        ("GET", "/v1/members/{}/deliveries"),
    ],
)
@pytest.mark.parametrize("key", ["colleague", "acme"])
def test_another_keys_member_is_not_found(door: Entrance, method: str, path: str, key: str) -> None:
    body = {"json": {"member_epoch": "e1"}} if method == "POST" else {}
    found = door.ask(method, path.format(member(door)), key=key, **body)
    assert (found.status_code, found.json()["code"]) == (404, "not-found")
    assert door.sender.sent == []


@pytest.mark.parametrize(
    ("key", "pool"), [("worker", "self"), ("acme", "p"), ("operator", "p"), ("auditor", "self")]
)
def test_a_key_joins_only_pools_of_its_kind(door: Entrance, key: str, pool: str) -> None:
    found = door.ask("POST", "/v1/members", key=key, json={"pool": pool, "places": 1})
    assert (found.status_code, found.json()["code"]) == (403, "forbidden")
    assert door.sender.sent == []


def test_a_worker_works_only_for_the_pools_of_its_key(door: Entrance) -> None:
    for pool, status in (("p", 201), ("q", 403)):
        door.keys["one"] = add_key(door.keys_path, role=Role.WORKER, pools=["p"])
        door.sender.owner = slot
        found = door.ask("POST", "/v1/members", key="one", json={"pool": pool, "places": 1})
        assert found.status_code == status
    door.keys["one"] = add_key(door.keys_path, role=Role.WORKER, pools=["q"])
    granted(door)
    assert say(door, "start", key="one", member=member(door, "one")).json()["code"] == "not-found"


def slot(asked: Any, lease_ms: int | None = 1_500) -> list[Any]:
    return [
        e.MemberSlotGranted(
            member=asked.member,
            member_epoch=asked.member_epoch,
            pool=asked.pool,
            places=asked.places,
            join_by_ms=START_MS,
            tenant=asked.tenant,
            lease_ms=lease_ms,
        )
    ]


def test_joining_tells_all_that_a_member_needs(door: Entrance) -> None:
    door.sender.owner = slot
    body = {"pool": "p", "places": 4, "member": "me", "member_epoch": "life-1"}
    found = door.ask("POST", "/v1/members", key="worker", json=body)
    assert found.status_code == 201
    assert found.json() == {
        "member": member(door),
        "member_epoch": "life-1",
        "pool": "p",
        "places": 4,
        "lease_ms": 1_500,
        "heartbeat_ms": 500,
        "join_by": "2023-11-14T22:13:20.000Z",
        "position": "main:1:2:0",
    }
    assert found.headers["location"] == f"/v1/members/{member(door)}"
    (word,) = door.sender.sent
    assert (word.member, word.tenant) == (member(door), None)


def test_a_tenants_process_works_for_its_own_tenant_only(door: Entrance) -> None:
    door.sender.owner = slot
    body = {"pool": "self", "places": 1}
    assert door.ask("POST", "/v1/members", json=body).status_code == 201
    assert door.sender.sent[0].tenant == "acme"
    named = door.ask("POST", "/v1/members", json={**body, "tenant": "bolt"})
    assert named.json()["code"] == "forbidden"


@pytest.mark.parametrize(
    ("code", "status"), [("pool-full", 409), ("unknown-pool", 422), ("epoch-superseded", 412)]
)
def test_a_refused_join_says_why(door: Entrance, code: str, status: int) -> None:
    door.sender.owner = lambda asked: [
        e.JoinRefused(member=asked.member, member_epoch=asked.member_epoch, code=code)
    ]
    found = door.ask("POST", "/v1/members", key="worker", json={"pool": "p", "places": 1})
    assert (found.status_code, found.json()["code"]) == (status, code)


def test_what_is_not_decided_in_time_is_pending_at_its_input(door: Entrance) -> None:
    body = {"pool": "p", "places": 1}
    prefer = {"Prefer": "wait=0"}
    found = door.ask("POST", "/v1/members", key="worker", json=body, headers=prefer)
    assert (found.status_code, found.json()) == (202, {"input": "members:0:0"})
    assert found.headers["evenhand-input"] == "members:0:0"


def test_a_heartbeat_tells_what_it_renewed_and_what_the_member_has_lost(door: Entrance) -> None:
    name = {"member": member(door), "member_epoch": "e1"}
    lost = e.RenewRefused(**name, operation=b"\1" * 16, epoch=3, code="lease-not-held")
    door.sender.owner = lambda _: [
        e.HeartbeatRecorded(**name),
        e.LeasesRenewed(**name, expires_ms=START_MS),
        lost,
    ]
    leases = [{"operation": "00" * 16, "epoch": 1}, {"operation": "01" * 16, "epoch": 3}]
    path, body = f"/v1/members/{member(door)}:heartbeat", {"member_epoch": "e1", "leases": leases}
    found = door.ask("POST", path, key="worker", json=body)
    assert found.json() == {
        "member": member(door),
        "leases_expire_at": "2023-11-14T22:13:20.000Z",
        "refused": [{"operation": "01" * 16, "epoch": 3, "code": "lease-not-held"}],
        "owner_time_ms": None,
    }
    (word,) = door.sender.sent
    assert word.leases[1] == i.LeaseName(operation=b"\1" * 16, epoch=3)
    crowd = {"member_epoch": "e1", "leases": leases * 600}
    assert door.ask("POST", path, key="worker", json=crowd).json()["code"] == "invalid-field"


def test_a_heartbeat_of_a_life_that_is_over_is_refused(door: Entrance) -> None:
    door.sender.owner = lambda asked: [
        e.JoinRefused(member=asked.member, member_epoch="e1", code="epoch-superseded")
    ]
    path = f"/v1/members/{member(door)}:heartbeat"
    found = door.ask("POST", path, key="worker", json={"member_epoch": "e1"})
    assert (found.status_code, found.json()["code"]) == (412, "epoch-superseded")


def test_leaving_names_the_newest_life_and_a_repeat_is_harmless(door: Entrance) -> None:
    path = f"/v1/members/{member(door)}"
    assert door.ask("DELETE", path, key="worker").status_code == 204
    assert door.sender.sent == []
    asked = i.JoinRequested(member=member(door), member_epoch="e7", pool="p", places=1)
    door.tell(*slot(asked))
    for epoch in ("", "?member_epoch=e6"):
        headers = {"Prefer": "wait=0"}
        found = door.ask("DELETE", path + epoch, key="worker", headers=headers)
        assert found.status_code == 204
    assert [word.member_epoch for word in door.sender.sent] == ["e7", "e6"]


def test_deliveries_are_read_from_a_position_on(door: Entrance) -> None:
    path = f"/v1/members/{member(door)}/deliveries"
    now = door.ask("GET", path, key="worker").json()
    assert now == {"items": [], "next": "main:1:1:0"}
    told = granted(door)
    found = door.ask("GET", f"{path}?after={now['next']}", key="worker").json()
    assert found["next"] == "main:1:2:0"
    (one,) = found["items"]
    assert (one["position"], one["type"]) == ("main:1:2:0", "GrantIssued")
    assert one["event"]["operation"] == told.id.hex()
    resumed = {"Last-Event-ID": found["next"]}
    assert door.ask("GET", path, key="worker", headers=resumed).json()["items"] == []


@pytest.mark.parametrize("after", ["nonsense", "other:1:0:0", "main:1:x:0"])
def test_a_position_that_is_none_is_malformed(door: Entrance, after: str) -> None:
    path = f"/v1/members/{member(door)}/deliveries?after={after}"
    assert door.ask("GET", path, key="worker").json()["code"] == "malformed"


def test_a_position_older_than_what_is_kept_is_gone(door: Entrance) -> None:
    path = f"/v1/members/{member(door)}/deliveries?after=main:0:-5:0"
    found = door.ask("GET", path, key="worker")
    assert (found.status_code, found.json()["code"]) == (410, "deliveries-gone")


@pytest.mark.parametrize("wait", ["wait=x", "wait=-1", "wait="])
def test_a_wait_that_is_no_number_is_malformed(door: Entrance, wait: str) -> None:
    path = f"/v1/members/{member(door)}/deliveries"
    found = door.ask("GET", path, key="worker", headers={"Prefer": wait})
    assert found.json()["code"] == "malformed"


def test_a_heartbeat_with_a_clock_is_told_the_owners_time_where_places_stand(
    door: Entrance,
) -> None:
    name = {"member": member(door), "member_epoch": "e1"}
    door.sender.owner = lambda _: [
        e.HeartbeatRecorded(**name),
        e.PlacesOffered(**name, sent_ms=9, time_ms=START_MS, authority_epoch=1),
    ]
    path, body = f"/v1/members/{member(door)}:heartbeat", {"member_epoch": "e1", "sent_ms": 9}
    found = door.ask("POST", path, key="worker", json=body)
    assert found.json()["owner_time_ms"] == START_MS
    assert door.sender.sent == [i.HeartbeatReported(**name, sent_ms=9)]
