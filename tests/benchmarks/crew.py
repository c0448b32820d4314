"""Minimal members: what a worker must say and no more, many of them in one process."""

import time
from collections import Counter
from typing import Any

from schemas import events as e
from schemas.ids import MemberEpoch, MemberId
from schemas.inputs import HeartbeatReported, JoinRequested, ResultReported, StartRequested
from schemas.topics import Topic
from schemas.units import Tokens
from tests.benchmarks import raw
from tests.benchmarks.cell import POOL, Inputs, outputs, words

HEARTBEAT_EVERY_S = 1.0
IDLE_S = 0.005
LINGER_MS = 20
"""What is sent within this time travels together, where throughput is measured."""
AHEAD = 2_000
"""Submissions that wait at any time there: enough that no place is ever idle."""


class Crew:
    """Joins, then starts every grant and reports success as soon as a start is accepted."""

    def __init__(
        self, bootstrap: str, prefix: str, *, members: int, places: int, linger_ms: int = 0
    ) -> None:
        self._inputs = Inputs(bootstrap, prefix, linger_ms=linger_ms)
        self._inbox = outputs(bootstrap, prefix, Topic.DELIVERIES)
        epoch = MemberEpoch(f"{time.monotonic_ns():x}")
        self._epochs = {MemberId(f"{prefix}-{number}"): epoch for number in range(members)}
        self._beat_at = 0.0
        self.heard: Counter[str] = Counter()
        """Deliveries by kind."""
        self.authority_epoch = 0
        """Of the newest grant: it grows with each takeover."""
        self.epoch_at_s = 0.0
        """When its first grant came, on this process's monotonic clock."""
        for member, its_epoch in self._epochs.items():
            self._inputs.send(
                JoinRequested(member=member, member_epoch=its_epoch, pool=POOL, places=places)
            )
        ends_at = time.monotonic() + raw.WAIT_S
        while self.heard["MemberSlotGranted"] < members:
            assert time.monotonic() < ends_at, f"Expected {members} member slots, got {self.heard}"
            self.work()

    def work(self, wait_s: float = IDLE_S) -> None:
        """Answer what has come, waiting for it at most `wait_s`."""
        now = time.monotonic()
        if now >= self._beat_at:
            self._beat_at = now + HEARTBEAT_EVERY_S
            for member, epoch in self._epochs.items():
                self._inputs.send(HeartbeatReported(member=member, member_epoch=epoch))
        for word in words(self._inbox, wait_s):
            if self._epochs.get(word.member) == word.member_epoch:
                self._answer(word)
        self._inputs.producer.poll(0)

    def close(self) -> None:
        """Let the member slots run out."""
        self._inputs.producer.flush(raw.WAIT_S)
        self._inbox.close()

    def _answer(self, word: Any) -> None:
        self.heard[type(word).__name__] += 1
        match word:
            case e.GrantIssued():
                if word.authority_epoch > self.authority_epoch:
                    self.authority_epoch, self.epoch_at_s = word.authority_epoch, time.monotonic()
                self._inputs.send(StartRequested(**identity(word)))
            case e.StartAccepted():
                self._inputs.send(result(word))
            case _:
                pass


def result(word: Any) -> ResultReported:
    """Success with less than the ceiling."""
    return ResultReported(
        **identity(word),
        outcome="success",
        prompt_tokens=Tokens(1_000),
        output_tokens=Tokens(200),
    )


def identity(word: Any) -> dict[str, Any]:
    """What names the attempt of an event in every word about it."""
    return {
        "tenant": word.tenant,
        "operation": word.operation,
        "incarnation": word.incarnation,
        "attempt": word.attempt,
        "epoch": word.epoch,
        "member": word.member,
        "member_epoch": word.member_epoch,
    }
