"""Standing starts: where a grant is a start, and nowhere else (R185).

A grant starts its attempt at once if and only if the pool has standing starts, the work may be
repeated safely, and the member offered its places in its last heartbeat, under the owner that
grants. Claim and start are then in the entry of the grant. An offer answers a heartbeat that
carries the member's clock, and tells that clock and the owner's time, less all steps of time.
"""

from collections.abc import Callable
from typing import Any

from schemas import events as e
from schemas import inputs as i
from schemas.entry import Entry
from schemas.ids import MemberId, PoolId
from schemas.journal import CAUSE_DISPATCH

from .config import Config
from .cursor import Cursor
from .records import Key, Life, key_of

CHECK = "standing"
REPEATABLE = frozenset({"read_only", "keyed"})


class Standing:
    """Looks at offers of places, and at grants beside what was offered."""

    def __init__(self, cursor: Cursor, config: Config) -> None:
        self._cursor = cursor
        self._config = config
        self._stepped_ms = 0
        self._pools: dict[MemberId, PoolId] = {}
        self._offered: dict[Life, int] = {}
        """Under which owner a life of a member offered its places in its last heartbeat."""
        self._due: dict[Key, list[type]] = {}
        """What must follow a grant within its entry."""

    def handlers(self) -> dict[type, Callable[[Any], None]]:
        """What to call for which event."""
        return {
            e.MemberSlotGranted: self._joined,
            e.HeartbeatRecorded: self._seen,
            e.MemberActivated: self._seen,
            e.MemberRestored: self._seen,
            e.PlacesOffered: self._offer,
            e.GrantIssued: self._granted,
            e.LeaseClaimed: self._follows,
            e.StartAccepted: self._follows,
        }

    def begin(self, entry: Entry) -> None:
        """The next entry."""
        self._stepped_ms += entry.time_step_ms or 0

    def end(self) -> None:
        """The entry is over: what was granted as started must be."""
        for key, kinds in self._due.items():
            if kinds:
                missing = " and ".join(kind.__name__ for kind in kinds)
                self._found(f"Expected {missing} with the grant of {key.operation.hex()}")
        self._due.clear()

    def _joined(self, event: e.MemberSlotGranted) -> None:
        self._pools[event.member] = event.pool

    def _seen(self, event: Any) -> None:
        self._offered.pop((event.member, event.member_epoch), None)

    def _offer(self, event: e.PlacesOffered) -> None:
        self._offered[event.member, event.member_epoch] = event.authority_epoch
        pool = self._pools.get(event.member)
        if pool is None or not self._stand(pool):
            self._found(f"Expected no offer of {event.member}, whose pool has no standing starts")
        if event.authority_epoch != self._cursor.epoch:
            self._found(f"Expected the offer under owner {self._cursor.epoch}")
        if event.time_ms != self._now_ms:
            self._found(f"Expected the owner's time {self._now_ms}, but it tells {event.time_ms}")
        if self._cursor.is_gone:
            return
        word = self._cursor.word
        told = (event.member, event.member_epoch, event.sent_ms)
        if not isinstance(word, i.HeartbeatReported) or told != (
            word.member,
            word.member_epoch,
            word.sent_ms,
        ):
            self._found(f"Expected the offer to answer a heartbeat of {event.member} at its clock")

    def _granted(self, event: e.GrantIssued) -> None:
        offered = self._offered.get((event.member, event.member_epoch))
        stands = self._stand(event.pool) and event.effect in REPEATABLE
        stands = stands and offered == self._cursor.epoch
        if stands is not (event.started_ms is not None):
            self._found(f"Expected the grant {'to start' if stands else 'not to start'} it at once")
        if event.started_ms is not None:
            self._due[key_of(event)] = [e.LeaseClaimed, e.StartAccepted]
            if event.started_ms != self._now_ms:
                self._found(f"Expected its start at {self._now_ms}, not at {event.started_ms}")

    def _follows(self, event: e.LeaseClaimed | e.StartAccepted) -> None:
        due = self._due.get(key_of(event), [])
        by_pass = self._cursor.cause == CAUSE_DISPATCH
        if due[:1] == [type(event)] and by_pass:
            del due[0]
        elif by_pass:
            self._found(f"Expected {type(event).__name__} with a grant that starts it, or asked")

    def _stand(self, pool: PoolId) -> bool:
        config = self._config.pools.get(pool)
        return config is not None and config.standing

    @property
    def _now_ms(self) -> int:
        return self._cursor.time_ms - self._stepped_ms

    def _found(self, detail: str) -> None:
        self._cursor.found(CHECK, detail)
