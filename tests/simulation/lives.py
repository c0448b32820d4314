"""The auditor's own idea of an operation's life: what may follow what, and what must end."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from schemas import events as e
from tests.simulation import members, provider

Attempt = tuple[bytes, int, int]


@dataclass
class Lives:
    """Operations that wait or run, and what their attempts hold."""

    open: dict[bytes, str] = field(default_factory=dict)
    held: dict[Attempt, str] = field(default_factory=dict)
    """Attempt to its member, as long as its reservation is not closed."""
    starts: dict[Attempt, int] = field(default_factory=dict)
    recorded: dict[Attempt, int] = field(default_factory=dict)
    granted: dict[Attempt, int] = field(default_factory=dict)
    admitted: int = 0
    succeeded: int = 0

    def see(self, event: e.Event) -> Iterator[str]:  # noqa: C901, PLR0912 - one arm an event
        match event:
            case e.OperationAdmitted():
                if event.operation in self.open:
                    yield f"{event.operation.hex()} is admitted twice"
                self.open[event.operation] = "waiting"
                self.admitted += 1
            case e.GrantIssued():
                yield from self._granted(event)
            case e.StartAccepted():
                key = _attempt(event)
                self.starts[key] = self.starts.get(key, 0) + 1
                if key not in self.held or self.starts[key] > 1:
                    yield f"{key} starts without a hold or twice"
            case e.GrantExpired() | e.GrantRevoked():
                if _attempt(event) in self.starts:
                    yield f"{_attempt(event)} ends unstarted after its start"
            case e.ResultRecorded():
                yield from self._recorded(event)
            case e.ReservationSettled() | e.ReservationReleased() | e.ReservationExpired():
                if self.held.pop(_attempt(event), None) is None:
                    yield f"{_attempt(event)} gives back what it does not hold"
            case e.OperationExpired() | e.OperationCancelled():
                if self.open.pop(event.operation, None) is None:
                    yield f"{event.operation.hex()} ends without having begun"
            case _:
                pass

    def _granted(self, event: e.GrantIssued) -> Iterator[str]:
        key = _attempt(event)
        self.granted[key] = self.granted.get(key, 0) + 1
        if self.granted[key] > 1 or event.operation not in self.open:
            yield f"{key} is granted twice, or to nobody who waits"
        if any(operation == event.operation for operation, _, _ in self.held):
            yield f"{event.operation.hex()} is granted while an attempt of it lives"
        self.held[key] = f"{event.member} {event.member_epoch}"
        if len(self.held) > provider.SLOTS_MAX:
            yield f"{len(self.held)} reservations hold {provider.SLOTS_MAX} slots"
        if sum(member == self.held[key] for member in self.held.values()) > members.PLACES:
            yield f"{event.member} has more grants than places"

    def _recorded(self, event: e.ResultRecorded) -> Iterator[str]:
        key = _attempt(event)
        self.recorded[key] = self.recorded.get(key, 0) + 1
        if key not in self.starts or self.recorded[key] > 1:
            yield f"{key} has a result without a start, or two"
        if event.outcome != "not_sent" and self.open.pop(event.operation, None) is None:
            yield f"{event.operation.hex()} ends without having begun"
        self.succeeded += event.outcome == "success"

    def unresolved(self) -> list[Attempt]:
        """Started attempts without a result."""
        return [key for key in self.starts if key not in self.recorded]

    def at_the_end(self) -> Iterator[str]:
        """What a healed world must not leave behind."""
        if self.open:
            yield f"{len(self.open)} admitted operations never ended"
        if self.held:
            yield f"{len(self.held)} reservations were never closed"


def _attempt(event: e.GrantIssued | e.StartAccepted | e.GrantExpired | e.GrantRevoked
             | e.ResultRecorded | e.ReservationSettled | e.ReservationReleased
             | e.ReservationExpired) -> Attempt:  # fmt: skip
    return event.operation, event.incarnation, event.epoch
