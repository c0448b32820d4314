"""Who is tried again, when, and how often: bounded, paid for, and never blindly (R76 to R79, R105).

Work with an effect that nobody can take back is granted again only when it is known of each earlier
start how it ended, or a person has asked for it. A retry is scheduled after a retryable failure, or
after an unknown outcome of work that may safely run twice, with doubling backoff, below the bound
of attempts, from the budget that first starts earn, before the deadline. A throttle pauses its
domain, and the end of a pause only moves later; what is tried too often is dead.
"""

from collections.abc import Callable
from typing import Any

from schemas import events as e
from schemas import inputs as i
from schemas.ids import DomainId, TenantId

from .book import Book
from .config import Config
from .cursor import Cursor
from .records import REFUSED, UNKNOWN, Operation

CHECK = "retries"
BACKOFF_MS_MAX = 3_600_000
COOLDOWN_MS_MAX = 86_400_000
HUNDRED = 100
"""A retry, in the hundredths that first starts earn."""


class Retries:
    """Looks at what leads to another attempt, with the budgets and pauses of its own."""

    def __init__(self, cursor: Cursor, config: Config, book: Book) -> None:
        self._cursor = cursor
        self._config = config
        self._book = book
        self._credit: dict[tuple[DomainId, TenantId], int] = {}
        """Retries left where some are missing, in hundredths."""
        self._pauses: dict[DomainId, int | None] = {}
        """Until when a domain grants nothing; None: until it is configured again."""
        self._recorded: e.ResultRecorded | None = None

    def handlers(self) -> dict[type, Callable[[Any], None]]:
        """What to call for which event."""
        return {
            e.GrantIssued: self._granted,
            e.StartAccepted: self._started,
            e.ResultRecorded: self._known,
            e.RetryScheduled: self._scheduled,
            e.OperationDeadLettered: self._dead,
            e.CooldownSet: self._paused,
            e.ConfigActivated: self._configured,
            e.ManualRetryAccepted: self._by_hand,
        }

    def _granted(self, event: e.GrantIssued) -> None:
        operation = self._book.operations.get(event.operation)
        if operation is not None and operation.effect == "unsafe" and operation.doubts:
            doubts = ", ".join(map(str, sorted(operation.doubts)))
            self._found(f"Expected no second try: nobody knows how epoch {doubts} ended")
        if event.domain in self._pauses:
            until_ms = self._pauses[event.domain]
            if until_ms is None or self._cursor.time_ms < until_ms:
                self._found(f"Expected no grant in {event.domain}, which is paused: {until_ms}")

    def _started(self, event: e.StartAccepted) -> None:
        operation = self._book.operations.get(event.operation)
        if operation is None:
            return
        if operation.effect == "unsafe" and operation.doubts:
            self._found(f"Expected no second start of unsafe work after {operation.doubts}")
        key = (operation.queue[3], operation.queue[0])
        domain = self._config.domains.get(key[0])
        if not operation.committed and key in self._credit and domain is not None:
            self._spend(key, -domain.retry_percent)

    def _known(self, event: e.ResultRecorded) -> None:
        self._recorded = event

    def _scheduled(self, event: e.RetryScheduled) -> None:
        operation = self._book.operations.get(event.operation)
        if operation is None:
            return
        if event.epoch != operation.epoch:
            self._found(f"Expected it to follow epoch {operation.epoch}, not {event.epoch}")
        tries = self._tries(event, operation)
        domain = self._config.domains.get(operation.queue[3])
        if domain is None:
            return
        wait_ms = min(domain.retry_backoff_ms << min(tries, 32), BACKOFF_MS_MAX)
        not_before_ms = self._cursor.time_ms + wait_ms
        if event.not_before_ms != not_before_ms:
            self._found(f"Expected a backoff until {not_before_ms}, not {event.not_before_ms}")
        if event.not_before_ms >= operation.deadline_ms:
            self._found(f"Expected no retry at or after the deadline {operation.deadline_ms}")
        if tries + 1 >= domain.attempts_max:
            self._found(f"Expected at most {domain.attempts_max} attempts, but one more is due")
        if operation.cancelling:
            self._found("Expected no retry of what nobody wants any more")
        self._spend((operation.queue[3], operation.queue[0]), HUNDRED)

    def _tries(self, event: e.RetryScheduled, operation: Operation) -> int:
        """How many attempts counted before the one that it follows."""
        if event.cause == "unknown":
            if operation.effect not in ("read_only", "keyed"):
                self._found(f"Expected no retry of {operation.effect} work that may have run")
            if operation.state != UNKNOWN:
                self._found("Expected an unknown outcome before a retry for that")
            return operation.tries
        self._follows(event, frozenset({"retryable"}))
        return max(0, operation.tries - 1)

    def _spend(self, key: tuple[DomainId, TenantId], hundredths: int) -> None:
        domain = self._config.domains.get(key[0])
        most = HUNDRED * (0 if domain is None else domain.retry_burst)
        left = min(most, self._credit.get(key, most)) - hundredths
        if left < 0:
            self._found(f"Expected {key[1]} to have a retry left in {key[0]}")
        if left >= most:
            self._credit.pop(key, None)
        else:
            self._credit[key] = left

    def _dead(self, event: e.OperationDeadLettered) -> None:
        operation = self._book.operations.get(event.operation)
        if operation is None:
            return
        domain = self._config.domains.get(operation.queue[3])
        if domain is None:
            return
        if event.reason == "throttles-exhausted":
            self._follows(event, REFUSED)
            too_early = operation.throttles <= domain.throttles_max
        else:
            self._follows(event, frozenset({"retryable"}))
            too_early = (
                event.reason == "attempts-exhausted" and operation.tries < domain.attempts_max
            )
        if too_early:
            tried = f"{operation.tries} tries and {operation.throttles} throttles"
            self._found(f"Expected it alive after {tried}, but {event.reason}")

    def _paused(self, event: e.CooldownSet) -> None:
        self._follows(event, frozenset({event.cause}) & REFUSED)
        if event.domain in self._pauses:
            before = self._pauses[event.domain]
            if before is None or (event.until_ms is not None and event.until_ms <= before):
                self._found(f"Expected the pause of {event.domain} to end after {before}")
        most_ms = self._cursor.time_ms + COOLDOWN_MS_MAX
        if event.until_ms is not None and not self._cursor.time_ms < event.until_ms <= most_ms:
            self._found(f"Expected a pause of at most a day, not until {event.until_ms}")
        self._pauses[event.domain] = event.until_ms

    def _configured(self, event: e.ConfigActivated) -> None:
        if event.scope == "domain":
            self._pauses.pop(DomainId(event.name), None)

    def _by_hand(self, event: e.ManualRetryAccepted) -> None:
        if self._cursor.is_gone:
            return
        word = self._cursor.word
        if not isinstance(word, i.RetryRequested) or word.operation != event.operation:
            self._found("Expected a person to ask for another try")
        elif (word.author, word.reason) != (event.author, event.reason):
            self._found(f"Expected it by {word.author}, not by {event.author}")
        elif event.deadline_ms != self._cursor.time_ms + word.start_within_ms:
            self._found(f"Expected a deadline {word.start_within_ms} ms from now")

    def _follows(self, event: Any, outcomes: frozenset[str]) -> None:
        """Whether the result recorded last is of this input, and one of these."""
        last = self._recorded
        if last is None or last.outcome not in outcomes or self._cursor.asked is None:
            expected = " or ".join(sorted(outcomes)) or "no result"
            self._found(f"Expected {type(event).__name__} to follow {expected}")

    def _found(self, detail: str) -> None:
        self._cursor.found(CHECK, detail)
