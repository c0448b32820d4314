"""What is said over HTTP is the word that would stand on the topic, and what is heard the event."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evenhand._http_said import request_of
from schemas import plain
from schemas.ids import member_of_key
from schemas.topics import TOPICS, Topic
from tests.support.door import Entrance, entrance
from tests.support.member import Life
from tests.support.told import Told
from tests.support.words import e, i

AT = "main:1:1:0"


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Entrance]:
    with entrance(tmp_path) as made:
        made.tell((0, Told().admitted()), inputs=[(0, 0, 1)])
        yield made


def said(door: Entrance, word: Any, key: str) -> Any:
    """What reaches the topic when a member of this key says the word over HTTP."""
    member = member_of_key(door.keys[key].split("_")[1], "me")
    asked = request_of(word, member=member, at_least=AT)
    body = asked.arguments()["json"]
    more = {} if body is None else {"json": body}
    found = door.ask(
        asked.method, asked.path, key=key, headers=asked.headers, params=asked.params, **more
    )
    assert found.status_code in (202, 204), found.text
    return door.sender.sent[-1]


def words(member: str) -> list[Any]:
    """Each word that a worker says, with every field and with as few as may be."""
    attempt = {**Told(member=member).attempt, "member_epoch": "life"}
    life = {"member": member, "member_epoch": "life"}
    lease = i.LeaseName(operation=bytes(range(16)), epoch=7)
    used = {"prompt_tokens": -1, "output_tokens": 2**40}
    result = {"send_delay_ms": 3, "result_ref": "s3://r", "error": "short", "retry_after_ms": 9}
    return [
        i.HeartbeatReported(**life),
        i.HeartbeatReported(**life, leases=(lease, lease)),
        i.LeaveAnnounced(**life),
        i.ClaimRequested(**attempt),
        i.StartRequested(**attempt),
        i.SendReported(**attempt, send_delay_ms=5),
        i.CheckpointReported(**attempt, number=2),
        i.CheckpointReported(**attempt, number=2, state_ref="s3://s", context_bytes=5, artifacts=1),
        i.ResultReported(**attempt, outcome="not_sent"),
        i.ResultReported(**attempt, outcome="throttled", **used, **result),
        i.UsageReported(**attempt, unit="tokens", evidence="call", **used),
    ]


@pytest.mark.parametrize("number", range(len(words("m"))))
def test_each_word_of_a_worker_arrives_unchanged(door: Entrance, number: int) -> None:
    member = member_of_key(door.keys["worker"].split("_")[1], "me")
    door.tell(Told(member=member).granted())
    word = words(member)[number]
    assert said(door, word, "worker") == word


@pytest.mark.parametrize(("key", "tenant"), [("worker", None), ("acme", "acme")])
def test_a_join_names_the_member_by_its_key(door: Entrance, key: str, tenant: str | None) -> None:
    pool = "p" if tenant is None else "self"
    word = i.JoinRequested(member="me", member_epoch="life", pool=pool, places=3, tenant=tenant)
    found = said(door, word, key)
    assert (found.member_epoch, found.pool, found.places, found.tenant) == ("life", pool, 3, tenant)
    assert found.member == member_of_key(door.keys[key].split("_")[1], "me")


def test_a_submission_arrives_with_the_full_name_of_its_member(door: Entrance) -> None:
    word = i.OperationSubmitted(
        tenant="acme",
        user="u",
        idempotency_key="one intent",
        pool="self",
        domain="d",
        lane="bulk",
        tier="fast",
        connection="c",
        effect="keyed",
        prompt_tokens=9,
        output_tokens_max=3,
        payload_bytes=5,
        payload_ref="s3://p",
        content_sha256="ab" * 32,
        start_within_ms=7_000,
        member="me",
        runtime_ms=60_000,
        turns_max=3,
        tools=("search", "read"),
        parent=bytes(range(16)),
    )
    member = member_of_key(door.keys["acme"].split("_")[1], "me")
    found = said(door, word, "acme")
    assert found.member == member
    fields = [name for name in i.OperationSubmitted.__struct_fields__ if name != "member"]
    assert {n: getattr(found, n) for n in fields} == {n: getattr(word, n) for n in fields}


def test_a_cancellation_arrives(door: Entrance) -> None:
    word = i.CancellationRequested(tenant="acme", operation=Told().id, reason="enough")
    assert said(door, word, "acme") == word


def test_a_reference_that_no_cell_would_keep_is_left_out_and_the_result_arrives(
    door: Entrance,
) -> None:
    member = member_of_key(door.keys["worker"].split("_")[1], "me")
    attempt = Told(member=member).attempt
    word = i.ResultReported(**attempt, outcome="success", result_ref="x" * 5_000)
    assert said(door, word, "worker") == i.ResultReported(**attempt, outcome="success")


def test_each_event_that_is_delivered_is_heard_as_it_was_told() -> None:
    life = Life()
    grant = life.grant(7, tools=("search",), parent=bytes(range(16)), checkpoint_ref=None)
    rejected = e.OperationRejected(
        tenant="t", operation=bytes(16), code="c", detail="d", binds_key=True, payload_digest=b"\1"
    )
    events = [grant, life.accepted(grant), life.revoked(grant), life.slot_granted(), rejected]
    for event in events:
        fields = json.loads(json.dumps(plain.plain(event)))
        heard = plain.event_of(type(event).__name__, {**fields, "of_a_newer_server": 1})
        assert heard == event
    kinds = {kind.__name__ for kind in TOPICS[Topic.DELIVERIES].holds}
    assert all(plain._fields(getattr(e, kind)) for kind in kinds)
    assert plain.event_of("OfANewerServer", {}) is None
    with pytest.raises(ValueError, match="missing required field"):
        plain.event_of("StartAccepted", {})
