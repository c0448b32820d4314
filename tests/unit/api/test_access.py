"""Who may do what: every route against every role, without a key, and with another tenant's id."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.door import Entrance, entrance
from tests.support.told import START_MS, Told

READERS = {"acme", "operator", "auditor"}
MEMBERS = {"acme", "worker"}


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Entrance]:
    with entrance(tmp_path) as made:
        yield made


def unknown_and_dead(door: Entrance) -> None:
    """Of tenant bolt: one operation with an unknown outcome, and one whose attempts are used up."""
    told, dead = Told("k", tenant="bolt"), Told("dead", tenant="bolt", sequence=2)
    door.tell((0, told.admitted()), (1, dead.admitted()), inputs=[(0, 0, 2)])
    door.tell(told.granted(), *told.started(START_MS + 200), told.unknown())
    door.tell(dead.dead())


OWN = Told("k", tenant="bolt").id.hex()
DEAD = Told("dead", tenant="bolt").id.hex()
CALLS = [
    ("GET", f"/v1/operations/{OWN}"),
    ("GET", f"/v1/operations/{OWN}/events"),
    ("POST", f"/v1/operations/{OWN}:cancel"),
    ("GET", "/v1/operations?tenant=bolt"),
    ("GET", f"/v1/operations?parent={OWN}"),
    ("GET", "/v1/unknowns?tenant=bolt"),
    ("GET", f"/v1/unknowns?operation={OWN}"),
    ("GET", "/v1/slots?tenant=bolt"),
    ("GET", "/v1/dead-letters?tenant=bolt"),
    ("GET", "/v1/tenants/bolt"),
    ("GET", "/v1/tenants/bolt/queue"),
    ("GET", "/v1/tenants/bolt/entitlement"),
]


@pytest.mark.parametrize(("method", "path"), CALLS)
def test_another_tenants_thing_does_not_exist(door: Entrance, method: str, path: str) -> None:
    unknown_and_dead(door)
    theirs = door.ask(method, path)
    assert (theirs.status_code, theirs.json()["code"]) == (404, "not-found")
    assert door.ask(method, path, key="bolt").status_code < 300
    nothing = door.ask(method, path.replace(OWN, "0" * 32).replace("bolt", "none"))
    assert nothing.json() == {**theirs.json(), "instance": nothing.json()["instance"]}
    assert all(word.tenant == "bolt" for word in door.sender.sent)


LISTS = ("tenants", "operations", "budgets", "members", "unknowns", "slots", "dead-letters")


@pytest.mark.parametrize("name", LISTS)
def test_a_list_shows_nothing_of_another_tenant(door: Entrance, name: str) -> None:
    unknown_and_dead(door)
    for secret in ("bolt", OWN, DEAD):
        assert secret not in door.ask("GET", f"/v1/{name}").text


def test_a_tenant_sees_its_own_unknown_outcomes_and_dead_letters(door: Entrance) -> None:
    unknown_and_dead(door)
    for key in ("bolt", "operator", "auditor"):
        (unknown,) = door.ask("GET", "/v1/unknowns", key=key).json()["items"]
        (dead,) = door.ask("GET", "/v1/dead-letters", key=key).json()["items"]
        assert (unknown["operation"], dead["operation"]) == (OWN, DEAD)


ROUTES = [
    ("POST", "/v1/operations", MEMBERS),
    ("GET", "/v1/operations", READERS),
    ("GET", f"/v1/operations/{OWN}", READERS),
    ("GET", f"/v1/operations/{OWN}/events", READERS),
    ("POST", f"/v1/operations/{OWN}:cancel", {*MEMBERS, "operator"}),
    ("POST", f"/v1/operations/{OWN}:retry", {"operator"}),
    ("GET", "/v1/unknowns", READERS),
    ("GET", "/v1/slots", READERS),
    ("POST", f"/v1/unknowns/{OWN}:reconcile", {"operator"}),
    ("GET", "/v1/dead-letters", READERS),
    ("GET", "/v1/tenants", READERS),
    ("GET", "/v1/tenants/acme", READERS),
    ("GET", "/v1/tenants/acme/queue", READERS),
    ("GET", "/v1/tenants/acme/entitlement", READERS),
    ("GET", "/v1/budgets", READERS),
    ("GET", "/v1/budgets/d", READERS),
    ("GET", "/v1/budgets/d/bound", {"operator", "auditor"}),
    ("GET", "/v1/members", READERS),
    ("POST", "/v1/members", MEMBERS),
    ("POST", "/v1/members/m:heartbeat", MEMBERS),
    ("DELETE", "/v1/members/m", MEMBERS),
    ("GET", "/v1/members/m/deliveries", MEMBERS),
    ("POST", f"/v1/grants/{OWN}:claim", MEMBERS),
    ("POST", "/v1/starts", MEMBERS),
    ("POST", "/v1/sends", MEMBERS),
    ("POST", f"/v1/operations/{OWN}/checkpoints", MEMBERS),
    ("POST", "/v1/results", MEMBERS),
    ("POST", "/v1/usage", MEMBERS),
    ("POST", "/v1/reservations", {"acme"}),
    ("POST", f"/v1/reservations/{OWN}:renew", {"acme"}),
    ("POST", f"/v1/reservations/{OWN}:settle", {"acme"}),
    ("POST", f"/v1/reservations/{OWN}:release", {"acme"}),
    ("GET", "/metrics", {"operator", "auditor"}),
]


OPEN = {"/healthz", "/readyz"}
"""What needs no key: it tells nothing of anybody."""


@pytest.mark.parametrize(("method", "path", "allowed"), ROUTES)
def test_a_role_may_do_what_it_may(
    door: Entrance, method: str, path: str, allowed: set[str]
) -> None:
    for key in ("acme", "worker", "operator", "auditor"):
        reply = door.ask(method, path, key=key, json={} if method == "POST" else None)
        assert (reply.status_code != 403) == (key in allowed), (key, reply.text)


@pytest.mark.parametrize(("method", "path", "_allowed"), ROUTES)
@pytest.mark.parametrize("key", [None, "eh_none_none", "nonsense"])
def test_without_a_valid_key_every_route_is_closed(
    door: Entrance, method: str, path: str, _allowed: set[str], key: str | None
) -> None:
    reply = door.ask(method, path, key=key)
    assert (reply.status_code, reply.json()["code"]) == (401, "unauthenticated")
    assert reply.headers["WWW-Authenticate"] == "Bearer"


def test_every_route_of_the_document_is_in_the_tables_above(door: Entrance) -> None:
    documented = {
        (method.upper(), path)
        for path, item in door.app.openapi()["paths"].items()
        for method in item
        if path not in OPEN
    }
    filled = {"{operation}": OWN, "{tenant}": "acme", "{domain}": "d", "{member}": "m"}
    for name, value in filled.items():
        documented = {(method, path.replace(name, value)) for method, path in documented}
    assert documented == {(method, path) for method, path, _ in ROUTES}


CANARY = "canary-5f1d-secret-prompt"


@pytest.mark.parametrize(("method", "path", "allowed"), [one for one in ROUTES if one[0] == "POST"])
def test_a_secret_that_nobody_asked_for_appears_nowhere(
    door: Entrance,
    method: str,
    path: str,
    allowed: set[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """R128: in a field that does not exist, as a value of the wrong kind, as a key."""
    unknown_and_dead(door)
    known = {"as": CANARY, "outcome": CANARY, "effect": CANARY, "start_within_ms": CANARY}
    for body in ({"prompt": CANARY}, {"api_key": CANARY, **known}, CANARY, [CANARY]):
        for key in sorted(allowed):
            headers = {"Idempotency-Key": "k"}
            assert CANARY not in door.ask(method, path, key=key, json=body, headers=headers).text
            assert CANARY not in door.ask(method, path, key=f"eh_1_{CANARY}", json=body).text
    assert door.sender.sent == []
    assert CANARY not in door.ask("GET", "/metrics", key="operator").text
    assert CANARY not in caplog.text
