"""What a member without the SDK does at a real cell: the how-to page, events without an end."""

import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from httpx_sse import EventSource, connect_sse

from evenhand import Client, Http, LinkLost, Worker, errors
from evenhand._http_link import HttpLink
from evenhand.cli.development import Development
from evenhand.cli.proposing import propose
from evenhand.dev.broker import Broker
from schemas.ids import MemberId
from tests.support.desk import INTENT
from tests.support.developed import developed
from tests.support.kafka import until
from tests.support.told import Told
from tests.support.words import i

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "work-over-http.md"


@pytest.fixture(scope="module")
def cell(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Development]:
    with developed(broker, tmp_path_factory.mktemp("cell")) as made:
        yield made


@pytest.fixture
def client(cell: Development) -> Iterator[Client]:
    with Client(url=cell.api_url, api_key=cell.tenant_key) as made:
        yield made


@pytest.fixture
def api(cell: Development) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {cell.worker_key}"}
    with httpx.Client(base_url=cell.api_url, headers=headers) as made:
        yield made


def code_of(page: Path, path: str) -> str:
    """The example that asks this path."""
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    found: str = next(block for block in blocks if path in block)
    return found


@dataclass
class Reply:
    url: str = "s3://answer"
    usage: dict[str, int] = field(default_factory=lambda: {"prompt_tokens": 80, "output_tokens": 7})


def test_the_page_is_a_whole_worker(cell: Development, client: Client) -> None:
    asked = client.submit(idempotency_key=uuid4().hex, **INTENT)
    scope: dict[str, Any] = {
        "httpx": httpx,
        "time": time,
        "url": cell.api_url,
        "key": cell.worker_key,
        "call_the_provider": lambda *_: Reply(),
    }
    exec(code_of(PAGE, "/v1/starts"), scope)
    settled = scope["settled"].json()
    scope["api"].close()
    assert (settled["state"], settled["settlement"]["tokens_actual"]) == ("succeeded", 87)
    assert client.get(asked.operation).result_ref == "s3://answer"


def test_the_page_asks_for_permission_and_settles(cell: Development) -> None:
    headers = {"Authorization": f"Bearer {cell.tenant_key}"}
    with httpx.Client(base_url=cell.api_url, headers=headers, timeout=30) as api:
        scope: dict[str, Any] = {
            "time": time,
            "api": api,
            "intent": uuid4().hex,
            "prompt": "s3://prompt",
            "call_the_provider": lambda *_: Reply(),
        }
        exec(code_of(PAGE, "/v1/reservations"), scope)
    settled = scope["settled"].json()
    assert (settled["state"], settled["settlement"]["tokens_actual"]) == ("succeeded", 87)


class Member:
    """One place, held by hand."""

    def __init__(self, api: httpx.Client, pool: str = "default") -> None:
        self.api = api
        told = api.post("/v1/members", json={"pool": pool, "places": 1}).json()
        self.name, self.epoch, self.place = told["member"], told["member_epoch"], told["position"]
        self.beat()

    def beat(self, *leases: dict[str, Any]) -> Any:
        body = {"member_epoch": self.epoch, "leases": list(leases)}
        return self.api.post(f"/v1/members/{self.name}:heartbeat", json=body).json()

    def stream(self, last: str) -> Any:
        path = f"/v1/members/{self.name}/deliveries"
        return connect_sse(self.api, "GET", path, headers={"Last-Event-ID": last})

    def leave(self) -> None:
        assert self.api.delete(f"/v1/members/{self.name}").status_code == 204


def names(grant: dict[str, Any]) -> dict[str, Any]:
    kept = ("operation", "incarnation", "attempt", "epoch", "member", "member_epoch")
    return {name: grant[name] for name in kept}


def test_a_stream_is_resumed_without_gap_or_repeat(api: httpx.Client, client: Client) -> None:
    member = Member(api)
    heard: list[tuple[str, str]] = []
    client.submit(idempotency_key=uuid4().hex, **INTENT)

    def next_of(source: EventSource) -> Any:
        one = next(found for found in source.iter_sse() if found.data)
        heard.append((one.id, one.event))
        return one.json()["event"]

    with member.stream(member.place) as source:
        attempt = names(next_of(source))
    # Nobody listens now: what is delivered meanwhile comes first after the resume.
    assert api.post("/v1/starts", json=attempt).status_code == 200
    with member.stream(heard[-1][0]) as source:
        next_of(source)
    lease = {"operation": attempt["operation"], "epoch": attempt["epoch"]}
    foreign = {"operation": "ab" * 16, "epoch": 1}
    renewed = member.beat(lease, foreign)
    assert renewed["leases_expire_at"] is not None
    assert [one["operation"] for one in renewed["refused"]] == ["ab" * 16]
    with member.stream(heard[-1][0]) as source:
        assert next_of(source)["operation"] == "ab" * 16
    assert api.post("/v1/results", json={**attempt, "outcome": "success"}).status_code == 200
    assert [kind for _, kind in heard] == ["GrantIssued", "StartAccepted", "RenewRefused"]
    assert len({place for place, _ in heard}) == 3
    member.leave()


def test_a_stream_in_which_nothing_happens_says_where_it_is(api: httpx.Client) -> None:
    member = Member(api)
    path = f"/v1/members/{member.name}/deliveries"
    with api.stream("GET", path, headers={"Accept": "text/event-stream"}) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        first = next(line for line in response.iter_lines() if line)
    assert re.fullmatch(r"id: main:1:\d+:\d+", first)
    member.leave()


def test_a_start_that_is_sent_again_is_refused_and_a_result_is_answered_again(
    api: httpx.Client, client: Client
) -> None:
    member = Member(api)
    client.submit(idempotency_key=uuid4().hex, **INTENT)
    with member.stream(member.place) as source:
        grant = next(one for one in source.iter_sse() if one.event == "GrantIssued")
    attempt = names(grant.json()["event"])
    claim = {name: value for name, value in attempt.items() if name != "operation"}
    path = f"/v1/grants/{attempt['operation']}:claim"
    assert api.post(path, json=claim).json()["expires_at"] is not None
    starts = [api.post("/v1/starts", json=attempt) for _ in range(2)]
    assert [found.status_code for found in starts] == [200, 409]
    assert starts[1].json()["code"] == "start-refused"
    told = {**attempt, "outcome": "success", "prompt_tokens": 1, "output_tokens": 2}
    results = [api.post("/v1/results", json=told).json() for _ in range(2)]
    assert [found["replayed"] for found in results] == [False, True]
    other = api.post("/v1/results", json={**told, "outcome": "terminal"})
    assert (other.status_code, other.json()["code"]) == (409, "settlement-conflict")
    used = {**attempt, "prompt_tokens": 5, "output_tokens": 2, "evidence": "call-1"}
    usage = [api.post("/v1/usage", json=used).json() for _ in range(2)]
    assert [found["changed"] for found in usage] == [True, False]
    for wrong, code in (({"unit": "words"}, "usage-unit-unknown"), ({"output_tokens": -1}, None)):
        found = api.post("/v1/usage", json={**used, **wrong}).json()
        assert found["code"] == (code or "usage-out-of-range")
    member.leave()


def test_of_all_members_of_an_open_pool_one_gets_the_lease(
    cell: Development, api: httpx.Client, client: Client
) -> None:
    by: Any = {"author": "test", "reason": "test"}
    open_pool = i.PoolConfig(domains=("default",), unclaimed_max=2)
    proposal = i.ConfigProposed(scope="pool", name="anyone", pool=open_pool, **by)
    assert [*propose(cell.kafka, [[proposal]], wait_s=20)]
    members = [Member(api, pool="anyone") for _ in range(4)]
    client.submit(idempotency_key=uuid4().hex, **{**INTENT, "pool": "anyone"})
    answers = []
    for member in members:
        with member.stream(member.place) as source:
            grant = next(one for one in source.iter_sse() if one.event == "GrantIssued")
        event = grant.json()["event"]
        speaks = {**names(event), "member": member.name, "member_epoch": member.epoch}
        path = f"/v1/grants/{speaks.pop('operation')}:claim"
        answers.append((api.post(path, json=speaks), speaks, event["operation"]))
    assert [found.status_code for found, _, _ in answers] == [200, 409, 409, 409]
    assert {found.json()["code"] for found, _, _ in answers[1:]} == {"claim-held"}
    for (_, speaks, operation), status in zip(answers, (200, 409, 409, 409), strict=True):
        started = api.post("/v1/starts", json={**speaks, "operation": operation})
        assert started.status_code == status
    _, speaks, operation = answers[0]
    told = {**speaks, "operation": operation, "outcome": "success"}
    assert api.post("/v1/results", json=told).json()["state"] == "succeeded"
    for member in members:
        member.leave()


def test_a_link_that_would_miss_something_ends_its_member(cell: Development) -> None:
    class Late(HttpLink):
        """Its place was long ago."""

        def _place(self) -> str:
            return "main:0:-2:0"

    link = Late(Http(cell.api_url, cell.worker_key), MemberId("m"))

    def lost() -> bool:
        try:
            link.receive(0.1)
        except LinkLost:
            return True
        return False

    until(lost, "the link to be lost")
    link.close(1)


def test_a_worker_with_a_key_of_another_kind_ends_at_once(cell: Development) -> None:
    worker = Worker(lambda _: None, pool="default", via=Http(cell.api_url, cell.tenant_key))
    with pytest.raises(errors.Forbidden):
        worker.run()


def test_a_start_that_the_api_refuses_is_heard_as_refused(cell: Development) -> None:
    link = HttpLink(Http(cell.api_url, cell.worker_key), MemberId("m"))
    link.send(i.StartRequested(**{**Told(member=link._member).attempt, "operation": bytes(16)}))
    heard = until(lambda: [*link.receive(0.1)] or None, "an answer")
    assert [(type(one).__name__, one.code) for one in heard] == [("StartRefused", "not-found")]
    link.close(1)


def test_a_word_that_nobody_takes_is_given_up_when_the_link_closes(cell: Development) -> None:
    link = HttpLink(Http(cell.api_url, cell.worker_key), MemberId("m"))
    ended = threading.Event()
    link._client.base_url = httpx.URL("http://127.0.0.1:9")

    link.send(i.LeaveAnnounced(member="m", member_epoch="e"), durable=ended.set)
    link.close(0.2)
    assert not ended.is_set()
