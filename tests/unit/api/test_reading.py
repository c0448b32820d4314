"""Tenants, queues, budgets, members and probes, and that every reply is stamped."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from schemas.codes import CODES, Code
from schemas.registry import MARKER
from tests.support.door import Entrance, entrance
from tests.support.kafka import until
from tests.support.told import START_MS, Told
from tests.support.words import e, i


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Entrance]:
    with entrance(tmp_path) as made:
        yield made


def test_a_queue_tells_its_head_and_what_it_waits_for(door: Entrance) -> None:
    told = Told("k")
    door.tell((0, told.admitted()), inputs=[(0, 0, 1)])
    named = {"tenant": "acme", "operation": told.id, "domain": "d"}
    door.tell(e.OperationDeferred(**named, level="domain", dimension="slots", held_by="pace"))
    (queue,) = door.ask("GET", "/v1/tenants/acme/queue").json()["items"]
    assert (queue["waiting"], queue["head"]) == (1, told.id.hex())
    assert queue["deferred_on"] == {
        "domain": "d",
        "level": "domain",
        "dimension": "slots",
        "held_by": "pace",
        "not_before": None,
    }


def test_a_budget_tells_limit_held_in_use_counted_and_free(door: Entrance) -> None:
    first, second = Told("k1"), Told("k2", sequence=2)
    door.tell((0, first.admitted()), (1, second.admitted()), inputs=[(0, 0, 2)])
    door.tell(first.granted(), *first.started(START_MS + 200), second.granted())
    (level,) = door.ask("GET", "/v1/budgets/d").json()["items"]
    numbers = {
        use["dimension"]: [use[name] for name in ("limit", "held", "in_use", "counted", "free")]
        for use in level["dimensions"]
    }
    assert numbers == {"tokens-1s": [1000, 300, 300, 600, 400], "slots": [4, 1, 1, 2, 2]}


def test_a_budget_tells_what_became_of_the_reserve_of_bulk(door: Entrance) -> None:
    told, other = Told("k"), Told("k2", sequence=2)
    door.tell((0, told.admitted()), (1, other.admitted()), inputs=[(0, 0, 2)])
    named = {"tenant": "acme", "operation": told.id, "domain": "d"}
    deferred = e.OperationDeferred(**named, level="domain", dimension="slots", held_by="reserve")
    door.tell(deferred, replace(told.granted(), lane="bulk", by_floor=True), other.granted())
    (level,) = door.ask("GET", "/v1/budgets/d", key="operator").json()["items"]
    reserve = {"percent": 15, "taken": {"acme": 1}, "held_back": {"slots": 1}}
    assert level["bulk_reserve"] == reserve
    (level,) = door.ask("GET", "/v1/budgets/d", key="acme").json()["items"]
    assert level["bulk_reserve"] is None


def test_a_budget_tells_who_saves_to_who_sees_all_and_to_the_savers_tenant(door: Entrance) -> None:
    told, m1 = Told("large"), {"member": "m1", "member_epoch": "e1"}
    door.tell(e.MemberSlotGranted(**m1, pool="p", places=9, join_by_ms=START_MS))
    door.tell((0, told.admitted()), e.MemberActivated(**m1), inputs=[(0, 0, 1)])
    named = {"tenant": "acme", "operation": told.id, "domain": "d", "lane": "interactive"}
    door.tell(e.SavingStarted(**named, skips=32, since_ms=START_MS))
    savers = [
        door.ask("GET", "/v1/budgets/d", key=key).json()["items"][0]["saver"]
        for key in ("operator", "acme", "bolt")
    ]
    assert savers[0] == savers[1]
    assert savers[0].pop("since").endswith("Z")
    assert savers[0] == {
        "operation": told.id.hex(),
        "tenant": "acme",
        "lane": "interactive",
        "skips": 32,
        "tokens": 300,
    }
    assert savers[2] is None


def test_a_domain_tells_what_bound_in_each_minute(door: Entrance) -> None:
    named = {"tenant": "acme", "operation": Told("k").id, "domain": "d"}
    door.journal.time_ms = START_MS + 40_000 - 1  # a whole minute
    door.tell(e.OperationDeferred(**named, level="domain", dimension="slots", held_by="pace"))
    door.tell(e.CooldownSet(domain="d", cause="throttled", until_ms=START_MS + 41_000))
    reply = door.ask("GET", "/v1/budgets/d/bound", key="auditor").json()
    paused, pace = reply["items"][0].pop("bound")
    assert reply == {"domain": "d", "items": [{"minute": "2023-11-14T22:14:00.000Z", "further": 0}]}
    assert (paused["dimension"], paused["held_by"], paused["samples"]) == (None, "throttled", 0)
    assert pace == {
        "level": "domain",
        "dimension": "slots",
        "held_by": "pace",
        "since": "2023-11-14T22:14:00.000Z",
        "until": "2023-11-14T22:14:00.000Z",
        "samples": 1,
        "tenants": ["acme"],
    }
    door.journal.time_ms += 120_000
    door.tell()
    latest = door.ask("GET", "/v1/budgets/d/bound?minutes=2", key="operator")
    assert latest.json()["items"] == []


@pytest.mark.parametrize(
    ("path", "status"),
    [("nowhere/bound", 404), ("d/bound?minutes=0", 422), ("d/bound?minutes=1441", 422)],
)
def test_minutes_are_of_a_domain_that_exists_and_of_one_day(
    door: Entrance, path: str, status: int
) -> None:
    assert door.ask("GET", f"/v1/budgets/{path}", key="operator").status_code == status


def test_a_tenants_own_level_is_its_own(door: Entrance) -> None:
    slots = i.DimensionConfig(name="own", unit="slots", kind="concurrency", limit=1)
    config = i.TenantConfig(budgets=(i.TenantBudget(domain="d", dimensions=(slots,)),))
    common = {"version": 2, "author": "test", "reason": "test"}
    door.tell(e.ConfigActivated(scope="tenant", name="bolt", tenant=config, **common))
    told = Told("k", tenant="bolt")
    door.tell((0, told.admitted()), inputs=[(0, 0, 1)])
    door.tell(told.granted())

    def levels(key: str) -> list[Any]:
        return [
            level["tenant"] for level in door.ask("GET", "/v1/budgets/d", key=key).json()["items"]
        ]

    assert levels("acme") == [None]
    assert levels("bolt") == levels("auditor") == [None, "bolt"]
    (use,) = door.ask("GET", "/v1/budgets", key="bolt").json()["items"][1]["dimensions"]
    assert (use["held"], use["free"]) == (1, 0)


def test_members_are_for_operators_and_a_tenants_own(door: Entrance) -> None:
    for member, tenant in (("w1", None), ("mine", "acme")):
        named = {"member": member, "member_epoch": "e1"}
        pool = "p" if tenant is None else "self"
        door.tell(
            e.MemberSlotGranted(**named, pool=pool, places=2, tenant=tenant, join_by_ms=START_MS)
        )
    everybody = door.ask("GET", "/v1/members", key="operator").json()["items"]
    assert [one["member"] for one in everybody] == ["mine", "w1"]
    own = door.ask("GET", "/v1/members").json()["items"]
    assert [one["member"] for one in own] == ["mine"]


def test_a_revoked_key_cannot_read_what_it_could(door: Entrance) -> None:
    assert door.ask("GET", "/v1/tenants").status_code == 200
    door.keys_path.write_text("")
    assert door.ask("GET", "/v1/tenants").status_code == 401


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/healthz"), ("GET", "/nothing"), ("PUT", "/v1/tenants"), ("GET", "/v1/tenants")],
)
@pytest.mark.parametrize("key", [None, "acme"])
def test_every_reply_has_the_position_it_reflects(
    door: Entrance, method: str, path: str, key: str | None
) -> None:
    assert door.ask(method, path, key=key).headers["Evenhand-Position"] == "main:1:0:5"


def test_a_restore_is_reported_and_nothing_is_answered_before_it(tmp_path: Path) -> None:
    made = Entrance(tmp_path)
    assert made.ask("GET", "/healthz", key=None).status_code == 200
    reply = made.ask("GET", "/readyz", key=None)
    assert (reply.status_code, reply.json()["ready"], reply.json()["offset"]) == (503, False, 0)
    refused = made.ask("GET", "/v1/tenants")
    assert (refused.status_code, refused.json()["code"]) == (503, "restoring")
    made.views.start()
    until(lambda: made.views.progress().ready, "the views to be restored")
    assert made.ask("GET", "/readyz", key=None).json() == {
        "ready": True,
        "role": "follower",
        "position": "main:1:0:5",
        "offset": 1,
        "end": 1,
    }
    made.views.close()


def test_a_halted_follower_is_neither_alive_nor_ready(door: Entrance) -> None:
    door.journal.append(MARKER + b"tomorrow" + b"a word that nobody here knows")
    until(lambda: bool(door.halts), "the follower to halt")
    health = door.ask("GET", "/healthz", key=None)
    assert health.status_code == 503
    assert "EntryUnreadable" in health.json()["detail"]
    assert door.ask("GET", "/readyz", key=None).status_code == 503
    assert door.ask("GET", "/v1/tenants").status_code == 503


def test_a_mistake_of_ours_is_a_problem_too(door: Entrance, monkeypatch: Any) -> None:
    def broken() -> Any:
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr(door.views, "ask", broken)
    reply = door.ask("GET", "/v1/tenants")
    assert (reply.status_code, reply.json()["code"]) == (500, "internal")
    assert "purpose" not in reply.text


def test_a_code_has_one_status_wherever_it_is_said() -> None:
    assert all(400 <= CODES[code].status < 600 for code in Code)
    assert {CODES[code].status for code in Code if CODES[code].temporary} <= {409, 429, 503}
