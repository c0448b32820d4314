"""The ports of the SDK: how requests reach a cell, and how a member and its cell hear each other.

`Transport` and `AsyncTransport` carry requests with one answer: over the API (`_http.py`), or for
submissions and cancellations straight to the topics (`_requests.py`). A `Link` carries a member's
words and deliveries; it never blocks longer than it is told, so one form serves both twins.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from os import environ
from typing import TYPE_CHECKING, Any, Protocol

from evenhand._words import bodies, ids, inputs

if TYPE_CHECKING:
    from evenhand._kafka import KafkaDecisions


class Transport(Protocol):
    """Requests with one answer. Each method blocks, and raises EvenhandError's kinds."""

    def submit(self, submission: "Submission") -> bodies.Submitted:
        """Durable when it returns, and decided if that was waited for."""
        ...

    def get(
        self, operation: str, *, at_least: str | None, wait_s: float, ended_within_s: float = 0.0
    ) -> bodies.Operation:
        """The operation, as of `at_least` (a position or an input) or later.

        It waits for its end up to `ended_within_s`, but may answer before.
        """
        ...

    def cancel(self, operation: str, *, reason: str) -> str:
        """Durable when it returns. Returns: the input, for `at_least`."""
        ...

    def close(self) -> None:
        """Let go of connections and threads."""
        ...


class AsyncTransport(Protocol):
    """As `Transport`, awaited."""

    async def submit(self, submission: "Submission") -> bodies.Submitted:
        """Durable when it returns, and decided if that was waited for."""
        ...

    async def get(
        self, operation: str, *, at_least: str | None, wait_s: float, ended_within_s: float = 0.0
    ) -> bodies.Operation:
        """The operation, as of `at_least` (a position or an input) or later.

        It waits for its end up to `ended_within_s`, but may answer before.
        """
        ...

    async def cancel(self, operation: str, *, reason: str) -> str:
        """Durable when it returns. Returns: the input, for `at_least`."""
        ...

    async def close(self) -> None:
        """Let go of connections and threads."""
        ...


class Link(Protocol):
    """What a member says to its cell and hears from it; open at a fixed place of its inbox."""

    def send(self, word: inputs.Input, durable: Callable[[], None] | None = None) -> None:
        """Hand a word over, from any thread; it goes out in order per topic and key.

        `durable` is called inside `receive` or `close` once the word cannot be lost.
        """
        ...

    def receive(self, wait_s: float) -> Sequence[Any]:
        """Deliveries to the member in order, each once; waits only if none is there.

        Raises:
            LinkLost: deliveries may have been missed; the member must end.
        """
        ...

    def close(self, wait_s: float) -> None:
        """Wait until every word is durable, at most `wait_s`, and let go."""
        ...


class Links(Protocol):
    """Where members link to: `Kafka` or `Http` in earnest, `FakeEvenhand` in tests."""

    def link(self, member: ids.MemberId) -> Link:
        """A link whose place in the inbox is fixed when this returns."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """One intent and how it is sent: the same key is kept over every repeat."""

    body: bodies.Submit
    idempotency_key: str
    wait_admitted_ms: int | None = None


def _env(name: str, default: str) -> Callable[[], str]:
    return lambda: environ.get(name) or default


@dataclass(frozen=True, slots=True, kw_only=True)
class Kafka:
    """Where a cell's topics are; needs the extra `kafka` (`pip install evenhand[kafka]`).

    Each default is read from the environment when it is made.
    """

    bootstrap: str = field(default_factory=_env("EVENHAND_BOOTSTRAP", "127.0.0.1:9092"))
    prefix: str = field(default_factory=_env("EVENHAND_PREFIX", "evenhand"))
    cell: str = field(default_factory=_env("EVENHAND_CELL", "main"))
    config: Mapping[str, Any] = field(default_factory=dict)
    """Settings of librdkafka, for example those of TLS and SASL."""

    def link(self, member: ids.MemberId) -> Link:
        """A link to this cell, whose place in the inbox is fixed when this returns.

        Raises:
            Unreachable: no broker answered, or the cell has no such topics.
        """
        from evenhand._kafka import KafkaLink  # noqa: PLC0415 - only who links needs the extra

        return KafkaLink(self, member)

    def decisions(self, back_s: float) -> "KafkaDecisions":
        """Where a reconciler reads and tells, from so many seconds ago on; raises as `link`."""
        from evenhand._kafka import KafkaDecisions  # noqa: PLC0415 - as above

        return KafkaDecisions(self, back_s)
