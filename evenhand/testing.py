"""The double that ships: a small cell in memory, for tests of code that uses Evenhand.

    fake = FakeEvenhand()
    with (
        Client(transport=fake.transport("acme"), via=fake, tenant="acme", user="me") as client,
        Worker(handle, pool="default", via=fake),
    ):
        client.submit(pool="default", domain="default", ...)

It admits, grants first come first served while slots last, answers starts and checkpoints, records
results, tries again, reconciles and cancels, as a cell does. It knows no windows, weights,
deadlines or time: leases last until `expire_lease`, and waits are over at once. Both are judged by
the same contract suite.
"""

from collections.abc import Callable, Sequence
from queue import Empty
from typing import Any

from evenhand._fake import FakeCell
from evenhand._fake_rows import Bounds, Inbox, Row
from evenhand._intent import Identity, identity, operation_of, submitted
from evenhand._transport import Link, Submission
from evenhand._words import bodies, ids, inputs
from evenhand.errors import NotFound


class FakeEvenhand:
    """One cell in memory; safe to use from any thread."""

    def __init__(
        self,
        *,
        domains: Sequence[str] = ("default",),
        pools: Sequence[str] = ("default",),
        slots: int = 64,
        waiting_max: int = 1_000,
        send_within_ms: int = 1_000,
        attempts_max: int = 5,
        standing: Sequence[str] = (),
    ) -> None:
        """It begins empty.

        Args:
            domains: known budget domains; any other is refused.
            pools: known pools, besides `self`.
            slots: attempts that may run at once, over everything.
            waiting_max: operations of one tenant that may wait.
            send_within_ms: how soon after its start request a call must be sent.
            attempts_max: attempts of one operation that may fail or stay unknown.
            standing: pools with standing starts.
        """
        self._cell = FakeCell(
            Bounds(
                domains=tuple(domains),
                pools=tuple(pools),
                slots=slots,
                waiting_max=waiting_max,
                send_within_ms=send_within_ms,
                attempts_max=attempts_max,
                standing=tuple(standing),
            )
        )

    def link(self, member: ids.MemberId) -> Link:
        """For `via=` of clients and workers."""
        return FakeLink(self._cell.take, self._cell.inbox(member))

    def expire_lease(self, operation: str) -> None:
        """End the lease of a started attempt, as if its heartbeats had been lost."""
        self._cell.expire_lease(ids.OperationId(bytes.fromhex(operation)))

    def reconcile(self, operation: str, verdict: str) -> None:
        """Say what became of an unknown outcome, as an operator does.

        Args:
            operation: its id, in hex.
            verdict: completed, failed, not_executed or abandoned.
        """
        self._cell.reconcile(ids.OperationId(bytes.fromhex(operation)), verdict)

    def transport(self, tenant: str, user: str = "me") -> "FakeTransport":
        """For `transport=` of a Client."""
        return FakeTransport(self._cell, identity(tenant, user))

    def async_transport(self, tenant: str, user: str = "me") -> "AsyncFakeTransport":
        """For `transport=` of an AsyncClient."""
        return AsyncFakeTransport(self.transport(tenant, user))


class FakeLink:
    """`Link` to a cell in memory: every word is durable at once."""

    def __init__(self, take: Callable[[inputs.Input], None], inbox: Inbox) -> None:
        """Made by `FakeEvenhand.link`."""
        self._take, self._inbox = take, inbox

    def send(self, word: inputs.Input, durable: Callable[[], None] | None = None) -> None:
        """Decided when this returns."""
        self._take(word)
        if durable is not None:
            durable()

    def receive(self, wait_s: float) -> Sequence[Any]:
        """Deliveries in order."""
        try:
            heard = [self._inbox.get(timeout=wait_s)]
            while not self._inbox.empty():
                heard.append(self._inbox.get_nowait())
        except Empty:
            return ()
        return heard

    def close(self, wait_s: float) -> None:
        """Nothing is open."""


class FakeTransport:
    """`Transport` to a cell in memory: everything is decided when it is answered."""

    def __init__(self, cell: FakeCell, who: Identity) -> None:
        """Made by `FakeEvenhand.transport`."""
        self._cell, self._who = cell, who

    def submit(self, submission: Submission) -> bodies.Submitted:
        """Admitted, or known with its state now."""
        word = submitted(submission, self._who)
        known = self._cell.row(operation_of(word))
        row = self._cell.submit(word)
        operation = operation_of(word).hex()
        if known is None:
            return bodies.Submitted(operation=operation, state="admitted")
        return bodies.Submitted(operation=operation, state=row.state)

    def get(
        self,
        operation: str,
        *,
        at_least: str | None,  # noqa: ARG002 - it is never behind
        wait_s: float,  # noqa: ARG002 - as above
        ended_within_s: float = 0.0,  # noqa: ARG002 - it may answer before
    ) -> bodies.Operation:
        """As it is now."""
        return _operation(operation, self._mine(operation))

    def cancel(self, operation: str, *, reason: str) -> str:
        """Decided when this returns."""
        self._mine(operation)
        self._cell.take(
            inputs.CancellationRequested(
                tenant=self._who.tenant,
                operation=ids.OperationId(bytes.fromhex(operation)),
                reason=reason,
            )
        )
        return "cancellations:0:0"

    def close(self) -> None:
        """Nothing is open."""

    def _mine(self, operation: str) -> Row:
        row = self._cell.row(ids.OperationId(bytes.fromhex(operation)))
        if row is None or row.word.tenant != self._who.tenant:
            raise NotFound
        return row


class AsyncFakeTransport:
    """`AsyncTransport` to a cell in memory."""

    def __init__(self, sync: FakeTransport) -> None:
        """Made by `FakeEvenhand.async_transport`."""
        self._sync = sync

    async def submit(self, submission: Submission) -> bodies.Submitted:
        """Admitted, or known with its state now."""
        return self._sync.submit(submission)

    async def get(
        self, operation: str, *, at_least: str | None, wait_s: float, ended_within_s: float = 0.0
    ) -> bodies.Operation:
        """As it is now."""
        return self._sync.get(
            operation, at_least=at_least, wait_s=wait_s, ended_within_s=ended_within_s
        )

    async def cancel(self, operation: str, *, reason: str) -> str:
        """Decided when this returns."""
        return self._sync.cancel(operation, reason=reason)

    async def close(self) -> None:
        """Nothing is open."""


def _operation(operation: str, row: Row) -> bodies.Operation:
    word, result = row.word, row.result
    return bodies.Operation(
        operation=operation,
        tenant=word.tenant,
        user=word.user,
        state=row.state,
        pool=word.pool,
        domain=word.domain,
        lane=word.lane,
        tier=word.tier,
        connection=word.connection,
        effect=word.effect,
        prompt_tokens=word.prompt_tokens,
        output_tokens_max=word.output_tokens_max,
        payload_bytes=word.payload_bytes,
        payload_ref=word.payload_ref,
        member=row.grant.member if row.grant else word.member,
        attempt=row.epoch,
        cancel_requested=row.cancel_requested,
        outcome=None if result is None else result.outcome,
        used_prompt_tokens=None if result is None else result.prompt_tokens,
        used_output_tokens=None if result is None else result.output_tokens,
        result_ref=None if result is None else result.result_ref,
        error=None if result is None else result.error,
        code=row.code,
    )
