"""A scheduler that kills itself at one step of the loop: shipped code over ports with a trap.

`python -m tests.support.scheduler`, set like the shipped one; TRAP names the step. The trap waits
for the first entry that grants something and then sends SIGKILL to its own process.
"""

import os
import signal
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

from schemas.codec import decode
from schemas.entry import Entry
from schemas.events import GrantIssued
from streams.core.tables import Image
from streams.shell.journal import Journal, Landing, Reader, Writer
from streams.shell.kafka.admin import CellTopics, KafkaAdmin
from streams.shell.outbox import Outbox, Outgoing
from streams.shell.settings import Settings
from streams.shell.tables import Applied, TableStore
from streams.shell.telemetry import Telemetry, configure_logging
from streams.shell.wiring import build_ports, run

STEPS = (
    "not_sent",
    "sent",
    "landed_unseen",
    "acknowledged",
    "rows_written",
    "published_in_part",
)
"""The entry never left; it left and its fate is open; it is on the journal and its writer does not
know; its writer knows; its rows are on disk; half of its public records are out."""


class Trap:
    def __init__(self, step: str) -> None:
        assert step in STEPS, f"Expected one of {STEPS}, but got {step!r}"
        self.step = step
        self.armed = False

    def look_at(self, value: bytes) -> None:
        entry = decode(value)
        assert isinstance(entry, Entry)
        self.armed |= any(isinstance(decode(event.body), GrantIssued) for event in entry.events)

    def at(self, step: str) -> bool:
        return self.armed and self.step == step


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("Expected to be dead")


class TrappedWriter:
    def __init__(self, inner: Writer, trap: Trap) -> None:
        self._inner, self._trap = inner, trap

    def send(self, value: bytes) -> None:
        self._trap.look_at(value)
        if self._trap.at("not_sent"):
            die()
        self._inner.send(value)
        if self._trap.at("sent"):
            die()

    def landed(self, wait_ms: int) -> Landing | None:
        landing = self._inner.landed(wait_ms)
        if landing is not None and self._trap.at("landed_unseen"):
            die()
        return landing

    def close(self) -> None:
        self._inner.close()


class TrappedJournal:
    def __init__(self, inner: Journal, trap: Trap) -> None:
        self._inner, self._trap = inner, trap

    def topic_id(self) -> str | None:
        return self._inner.topic_id()

    def start(self) -> int | None:
        return self._inner.start()

    def end(self) -> int | None:
        return self._inner.end()

    def reader(self, offset: int) -> Reader:
        return self._inner.reader(offset)

    def writer(self) -> Writer:
        return TrappedWriter(self._inner.writer(), self._trap)


class TrappedTables:
    def __init__(self, inner: TableStore, trap: Trap) -> None:
        self._inner, self._trap = inner, trap

    def get(self, table: int, key: bytes) -> bytes | None:
        return self._inner.get(table, key)

    def scan(
        self, table: int, first: bytes, end: bytes, limit: int
    ) -> Sequence[tuple[bytes, bytes]]:
        return self._inner.scan(table, first, end, limit)

    def applied(self) -> Applied | None:
        return self._inner.applied()

    def write(self, images: Sequence[Image], applied: Applied) -> None:
        if self._trap.at("acknowledged"):
            die()
        self._inner.write(images, applied)
        if self._trap.at("rows_written"):
            die()

    def clear(self) -> None:
        self._inner.clear()

    def close(self) -> None:
        self._inner.close()


class TrappedOutbox:
    def __init__(self, inner: Outbox, trap: Trap) -> None:
        self._inner, self._trap = inner, trap

    def publish(self, offset: int, records: Sequence[Outgoing]) -> None:
        if not self._trap.at("published_in_part"):
            self._inner.publish(offset, records)
            return
        self._inner.publish(offset, records[: len(records) // 2])
        self._inner.send_rest()
        while self._inner.published(10) < offset:
            pass
        die()

    def send_rest(self) -> None:
        self._inner.send_rest()

    def published(self, wait_ms: int) -> int:
        return self._inner.published(wait_ms)

    def lag(self) -> tuple[int, int]:
        return self._inner.lag()

    def close(self) -> None:
        self._inner.close()


def main() -> None:
    settings, trap = Settings(), Trap(os.environ["TRAP"])
    configure_logging(settings.log_level)
    admin = KafkaAdmin(settings.bootstrap)
    topics = CellTopics(admin, settings.prefix, settings.cell)
    found = topics.check()
    assert found is not None, "Expected the cell's topics"
    real = build_ports(settings, admin, topics, found, Telemetry(settings.cell))
    ports = replace(
        real,
        journal=TrappedJournal(real.journal, trap),
        tables=lambda: TrappedTables(real.tables(), trap),
        outbox=lambda: TrappedOutbox(real.outbox(), trap),
    )
    run(ports, threading.Event())


if __name__ == "__main__":
    main()
