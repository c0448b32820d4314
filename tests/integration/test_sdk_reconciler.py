"""A retry after an unknown outcome is not executed and billed twice (field case F24).

Worker, reconciler and provider as they ship, at a real scheduler.
"""

import asyncio
import contextlib
import json
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from evenhand import AsyncAttempt, AsyncWorker, Kafka, Reconciler, Result
from evenhand.dev import demo_worker
from evenhand.dev.judge import Limits
from evenhand.dev.node import free_port
from evenhand.dev.play import Prompt
from evenhand.dev.provider import Provider
from evenhand.dev.reconciler import look_up
from schemas import events as e
from schemas.topics import Topic
from schemas.units import Tokens
from tests.support.asked import DOMAIN, POOL, submission
from tests.support.kafka import until
from tests.support.rig import Rig, Tail

TEXTS = {"p/0": Prompt(600, 300)}


class ConnectTimeout(ConnectionRefusedError, TimeoutError):
    """Flagged both "connect" and "timeout"."""


class Scene:
    """A cell, a provider that is asked over HTTP, and everything that was decided."""

    def __init__(self, rig: Rig, url: str, record: Path) -> None:
        self.rig, self.url, self._record = rig, url, record
        self._decisions = Tail(rig.log, Topic.DECISIONS)
        self._settlements = Tail(rig.log, Topic.SETTLEMENTS)
        self._heard: list[Any] = []

    @property
    def kafka(self) -> Kafka:
        log = self.rig.log
        return Kafka(bootstrap=log.bootstrap, prefix=log.prefix, cell=log.cell)

    @property
    def calls(self) -> list[Any]:
        return [json.loads(line) for line in self._record.read_text().splitlines()]

    def heard(self, kind: type) -> list[Any]:
        self._heard.extend(self._decisions.new())
        self._heard.extend(self._settlements.new())
        return [event for event in self._heard if isinstance(event, kind)]

    def until_heard(self, kind: type) -> Any:
        until(lambda: bool(self.heard(kind)), kind.__name__)
        return self.heard(kind)[-1]

    def submit(self, **fields: Any) -> None:
        tokens = {"prompt_tokens": Tokens(700), "output_tokens_max": Tokens(300)}
        self.rig.log.send(Topic.SUBMISSIONS, submission("t1", 0, **{**tokens, **fields}))

    @contextlib.contextmanager
    def reconciler(self) -> Iterator[Reconciler]:
        with (
            httpx.Client(base_url=self.url) as client,
            Reconciler(partial(look_up, client), domains=[DOMAIN], kafka=self.kafka) as running,
        ):
            yield running

    @contextlib.contextmanager
    def worker(self, first: BaseException | None = None) -> Iterator[None]:
        """Calls the provider, but for a first attempt that raises this instead."""
        failures = [] if first is None else [first]

        async def handle(provider: httpx.AsyncClient, attempt: AsyncAttempt) -> Result:
            if failures:
                raise failures.pop()
            return await demo_worker.call(provider, attempt)

        stop = threading.Event()

        async def work() -> None:
            async with (
                httpx.AsyncClient(base_url=self.url) as provider,
                AsyncWorker(partial(handle, provider), pool=POOL, via=self.kafka),
            ):
                await asyncio.to_thread(stop.wait)

        thread = threading.Thread(target=asyncio.run, args=(work(),))
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


@pytest.fixture
def scene(rig: Rig, tmp_path: Path) -> Iterator[Scene]:
    rig.scheduler()
    rig.configure()
    port, stop, serving = free_port(), asyncio.Event(), threading.Event()
    loop = asyncio.new_event_loop()
    limits = Limits(requests=99, tokens=99_999, slots=9, window_ms=60_000)
    path = tmp_path / "record.jsonl"

    async def serve() -> None:
        with path.open("w", buffering=1) as record:
            provider = Provider(limits, TEXTS, record, speed_up=100)
            server = await asyncio.start_server(provider.serve, "127.0.0.1", port)
            serving.set()
            await stop.wait()
            server.close()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    assert serving.wait(20)
    yield Scene(rig, f"http://127.0.0.1:{port}", path)
    loop.call_soon_threadsafe(stop.set)
    thread.join()
    loop.close()


def test_a_line_that_drops_after_the_request_costs_one_call_and_one_settlement(
    scene: Scene,
) -> None:
    scene.submit(payload_ref="p/0?reset&after_ms=1500")
    with scene.worker():
        unknown = scene.until_heard(e.OutcomeMarkedUnknown)
        assert scene.heard(e.ReservationSettled) == []
        with scene.reconciler():
            settled = scene.until_heard(e.ReservationSettled)
    known = scene.until_heard(e.OutcomeReconciled)
    assert unknown.cause == "reported"
    assert (known.source, known.verdict) == ("provider_lookup", "completed")
    assert (settled.tokens_reserved, settled.tokens_actual) == (1000, 900)
    assert len(scene.heard(e.ReservationSettled)) == 1
    assert len(scene.calls) == 1


def test_a_refused_connection_gives_everything_back_and_the_work_goes_on(scene: Scene) -> None:
    scene.submit(payload_ref="p/0")
    with scene.worker(first=ConnectionRefusedError()):
        scene.until_heard(e.ReservationSettled)
    assert scene.heard(e.OutcomeMarkedUnknown) == []
    assert len(scene.heard(e.ReservationReleased)) == 1
    (first, second) = scene.heard(e.StartAccepted)
    assert (first.epoch, second.epoch) == (1, 2)
    assert len(scene.calls) == 1


def test_what_is_flagged_as_a_timeout_too_is_unknown(scene: Scene) -> None:
    scene.submit(payload_ref="p/0")
    with scene.worker(first=ConnectTimeout()):
        unknown = scene.until_heard(e.OutcomeMarkedUnknown)
    assert (unknown.cause, unknown.error) == ("reported", "ConnectTimeout")
    assert scene.heard(e.ReservationReleased) == []
    assert scene.calls == []


def test_a_reconciler_that_starts_late_looks_back(scene: Scene) -> None:
    scene.submit(payload_ref="p/0?reset")
    with scene.worker():
        scene.until_heard(e.OutcomeMarkedUnknown)
    with scene.reconciler():
        assert scene.until_heard(e.OutcomeReconciled).source == "provider_lookup"


def test_what_never_reached_the_provider_is_released_and_run_again(scene: Scene) -> None:
    scene.submit(payload_ref="p/0")
    with scene.worker(first=TimeoutError()), scene.reconciler():
        scene.until_heard(e.ReservationSettled)
    assert scene.until_heard(e.OutcomeReconciled).verdict == "not_executed"
    assert len(scene.heard(e.ReservationReleased)) == 1
    assert len(scene.calls) == 1
