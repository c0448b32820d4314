"""The API over a told journal: real views on disk, and a sender whose inputs the test decides."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI

from api.app import create_app
from api.auth import Keys, add_key
from api.door import Waits
from api.ports import NotWritten, Sent
from projections.live import LiveViews
from projections.rocks import RocksViews
from schemas.bodies import Role
from schemas.ids import CellId
from schemas.inputs import Input
from schemas.topics import INPUT_TOPICS, Topic
from tests.support.kafka import until
from tests.support.told import START_MS, Told, ToldJournal, began, configured
from tests.support.words import e

Owner = Callable[[Any], list[Any]]
"""The events that the owner decides on one input."""

WAITS = Waits(admitted_ms=100, at_least_ms=100)
SUBMIT = {
    "pool": "p",
    "domain": "d",
    "prompt_tokens": 200,
    "output_tokens_max": 100,
    "payload_bytes": 10,
    "start_within_ms": 60_000,
}
"""The body of `Told`'s own submission."""


class DecidingSender:
    """`Sender` whose inputs `owner` decides at once; an owner of None is stopped."""

    def __init__(self, journal: ToldJournal) -> None:
        self.journal = journal
        self.owner: Owner | None = None
        self.broken = False
        self.sent: list[Any] = []
        self.wrote = asyncio.Event()
        self._next: dict[Topic, int] = {}

    async def send(self, topic: Topic, word: Input) -> Sent:
        if self.broken:
            raise NotWritten("no confirmation came")
        self.sent.append(word)
        self.wrote.set()
        offset = self._next.get(topic, 0)
        self._next[topic] = offset + 1
        if self.owner is not None:
            events = [(0, event) for event in self.owner(word)]
            self.journal.tell(*events, inputs=[(INPUT_TOPICS.index(topic), 0, 1)])
        return Sent(topic, 0, offset)


class Entrance:
    """An application with a key for everybody, over a small configured cell."""

    def __init__(self, path: Path) -> None:
        self.journal = ToldJournal()
        self.journal.tell(began(), *configured())
        self.sender = DecidingSender(self.journal)
        self.keys_path = path / "keys.jsonl"
        self.keys = {
            name: add_key(self.keys_path, role=role, tenant=tenant, user=user)
            for name, role, tenant, user in (
                ("acme", Role.TENANT, "acme", "u"),
                ("bolt", Role.TENANT, "bolt", "u"),
                ("worker", Role.WORKER, None, None),
                ("operator", Role.OPERATOR, None, None),
                ("auditor", Role.AUDITOR, None, None),
            )
        }
        self.halts: list[str] = []
        self.views = LiveViews(
            cell=CellId("main"),
            entries=self.journal,
            store=RocksViews(path / "views"),
            halted=lambda: self.halts.append("halted"),
        )
        self.app: FastAPI = create_app(self.views, self.sender, Keys(self.keys_path), WAITS)

    def ask(self, method: str, path: str, *, key: str | None = "acme", **more: Any) -> Any:
        """A request with somebody's key, or without one."""
        headers = dict(more.pop("headers", {}))
        if key is not None:
            headers["Authorization"] = f"Bearer {self.keys.get(key, key)}"
        return asyncio.run(self._request(method, path, headers=headers, **more))

    async def _request(self, method: str, path: str, **more: Any) -> httpx.Response:
        async with self.client() as client:
            return await client.request(method, path, **more)

    def client(self) -> httpx.AsyncClient:
        """For several requests at once."""
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        return httpx.AsyncClient(transport=transport, base_url="http://door")

    def submit(self, idempotency_key: str = "k", **more: Any) -> Any:
        """The submission of `Told(idempotency_key)`, or a changed one."""
        body = {**SUBMIT, **more.pop("body", {})}
        headers = {"Idempotency-Key": idempotency_key, **more.pop("headers", {})}
        return self.ask("POST", "/v1/operations", json=body, headers=headers, **more)

    def tell(self, *events: Any, **more: Any) -> None:
        """The owner's next entry, and wait until the views reflect it."""
        offset = self.journal.tell(*events, **more)
        until(lambda: self.views.progress().offset > offset, f"entry {offset} to be reflected")

    def start(self, told: Told) -> None:
        """Its operation is admitted, granted and started."""
        self.tell((0, told.admitted()), inputs=[(0, 0, 1)])
        self.tell(told.granted(), *told.started(START_MS + 200))

    def doubt(self, told: Told, **more: Any) -> None:
        """It is started, and then its outcome is unknown."""
        self.start(told)
        self.tell(e.LeaseExpired(**told.attempt, started=True), told.unknown(**more))


@contextmanager
def entrance(path: Path) -> Iterator[Entrance]:
    """An open door, followed up to the end of its journal."""
    made = Entrance(path)
    made.views.start()
    try:
        until(lambda: made.views.progress().ready, "the views to be restored")
        yield made
    finally:
        made.views.close()
