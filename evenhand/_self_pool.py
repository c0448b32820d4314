"""The submitter's own process as a member of pool `self`, for programs that want permission.

A waiting caller is a function that takes what is heard about its operation, so that one form
serves threads (`SimpleQueue.put`) and event loops (`call_soon_threadsafe`).
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import Any, Final, Generic

from evenhand._attempt import A, BaseAttempt
from evenhand._intent import Identity, operation_of, submitted
from evenhand._outcome import Outcome, Result
from evenhand._threads import MemberThreads, joining
from evenhand._transport import Links, Submission
from evenhand._words import bodies, events, ids, inputs
from evenhand.errors import (
    DeadlinePassed,
    EvenhandError,
    IdempotencyMismatch,
    OperationEnded,
    kind_of,
)

_STOP_WAIT_S: Final = 30.0
_STILL_COMING: Final = {
    bodies.State.WAITING,
    bodies.State.PARKED,
    bodies.State.GRANTED,
    bodies.State.LEASED,
}
_FOR_GOOD: Final = {
    Outcome.SUCCESS,
    Outcome.TERMINAL,
    Outcome.POLICY_DENIED,
    Outcome.CANCELLED,
}
"""After any other outcome another attempt may follow, for which nobody would wait here."""

Tell = Callable[[Any], object]
"""Takes what a waiting caller hears: an attempt, an event about its operation, or None at last."""


class SelfPool(Generic[A]):
    """One member of pool `self`, and who waits for which operation."""

    def __init__(
        self,
        links: Links,
        tenant: ids.TenantId,
        *,
        make: Callable[..., A],
        classify: Callable[[BaseException, A], Result | None],
        places: int,
    ) -> None:
        """Nothing happens before `start`; `make` and `classify` as in `MemberThreads`."""
        self._tenant = tenant
        self._joining = joining(ids.SELF_POOL, places, None, tenant)
        self._waiting: dict[ids.OperationId, Tell] = {}
        self._offered: dict[ids.OperationId, A] = {}
        """Started and told, but not taken: whoever pops it answers for it."""
        self._threads = MemberThreads(
            links,
            self._joining,
            make=make,
            classify=classify,
            run=self._run,
            told=self._told,
            wanted=lambda grant: grant.operation in self._waiting,
            stop_wait_s=_STOP_WAIT_S,
        )

    def start(self) -> Future[None]:
        """Begin to join. Returns: done when it is a member. Raises as `MemberThreads.start`."""
        self._threads.start()
        self._threads.finished.add_done_callback(self._tell_all)
        return self._threads.joined

    def stop(self) -> Future[None]:
        """Leave when what was started has ended. Returns: done then."""
        self._threads.stop()
        return self._threads.finished

    @property
    def ended(self) -> bool:
        """Whether the member has ended; a new one is needed then."""
        return self._threads.finished.done()

    def ask(self, who: Identity, asked: Submission, tell: Tell) -> ids.OperationId:
        """Submit an operation that this process will run; everything about it goes to `tell`."""
        word = submitted(asked, who, self._joining.member)
        operation = operation_of(word)
        self._waiting[operation] = tell
        self._threads.send(word)
        return operation

    def forget(self, operation: ids.OperationId) -> None:
        """Nobody waits any more, since it has ended."""
        self._waiting.pop(operation, None)

    def give_up(self, operation: ids.OperationId, reason: str) -> None:
        """Nobody waits any more: give back what was granted, and cancel it."""
        self.forget(operation)
        self._give_back(operation)
        self._threads.send(
            inputs.CancellationRequested(tenant=self._tenant, operation=operation, reason=reason)
        )

    def heard(self, about: Any) -> A | None:
        """The attempt if it may run now; None if there is more to wait for.

        Raises:
            EvenhandError: nothing more will come.
        """
        match about:
            case BaseAttempt() if about.send_within_s < 0:
                self._give_back(about.grant.operation)
                return None
            case BaseAttempt():
                return self._offered.pop(about.grant.operation)
            case events.DuplicateObserved() if about.state in _STILL_COMING:
                return None
            case None:
                raise OperationEnded("The member that waited for it has ended")
            case _:
                raise refusal(about)

    def end(self, attempt: A, failure: BaseException | None) -> None:
        """Settle it; another attempt of it is not wanted any more."""
        self.forget(attempt.grant.operation)
        word = self._threads.report(attempt, failure)
        if word.outcome not in _FOR_GOOD:
            self.give_up(attempt.grant.operation, word.outcome)

    def _run(self, attempts: Sequence[A]) -> None:
        for attempt in attempts:
            operation = attempt.grant.operation
            self._offered[operation] = attempt
            tell = self._waiting.get(operation)
            if tell is None:
                self._give_back(operation)
            else:
                tell(attempt)

    def _give_back(self, operation: ids.OperationId) -> None:
        attempt = self._offered.pop(operation, None)
        if attempt is not None:
            self._threads.report(attempt, Result(outcome=Outcome.NOT_SENT))

    def _told(self, event: Any) -> None:
        tell = self._waiting.get(event.operation)
        if tell is not None:
            tell(event)

    def _tell_all(self, _: Future[None]) -> None:
        for tell in list(self._waiting.values()):
            tell(None)


def refusal(event: Any) -> EvenhandError:
    """The exception for an event that ends an operation without a grant."""
    operation = event.operation.hex()
    match event:
        case events.OperationRejected():
            at_ms = event.retry_at_ms
            return kind_of(event.code)(
                event.detail,
                operation=operation,
                retry_at=None if at_ms is None else datetime.fromtimestamp(at_ms / 1000, UTC),
            )
        case events.DuplicateObserved(code=str(code)):
            return kind_of(code)(operation=operation)
        case events.SubmissionConflicted():
            return IdempotencyMismatch(operation=operation)
        case events.OperationExpired():
            return DeadlinePassed(operation=operation)
        case events.OperationDeadLettered():
            return kind_of(event.reason)(operation=operation)
        case _:
            return OperationEnded(operation=operation)
