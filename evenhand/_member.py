"""A member's life without I/O: what to send next, and what an answer means.

             begin          slot granted           leave              nothing left
    (new) ────────► JOINING ─────────────► MEMBER ───────► LEAVING ─────────────► (gone)
                      ▲  ▲                   │
        refused: wait │  │ lost, or superseded: at once
                      └──┴───────────────────┘            each time with a fresh member epoch

    grant ─► start requested ─► accepted ─► run ─► result sent ─► result durable: forgotten
       │         └─ refused, revoked, expired: forgotten   ▲
       └─ standing start: accepted with the grant ─────────┘

One thread owns a membership; only `beat` may be called from another.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Final, Generic, assert_never

from evenhand._attempt import A
from evenhand._life import Barred, Joining, Phase, Run, Step, Told
from evenhand._outcome import Outcome, Result
from evenhand._owner_time import OwnerTime
from evenhand._started import AboutStarted, AttemptKey, Started
from evenhand._words import codes, events, ids, inputs, units

JOIN_AGAIN_NS: Final = 1_000_000_000
"""A full pool has room when a member leaves, which takes seconds."""


BEAT_EVERY_S_MAX: Final = 1.0
"""A third of the time to live that cells start with."""
BEATS_PER_LEASE: Final = 3
"""Two may be lost before a lease is."""
NO_MEMBER_BEAT_S: Final = 0.05
"""Who is no member sends nothing; this bounds how late its first beat can be."""


Named = (
    events.GrantIssued
    | events.StartAccepted
    | events.StartRefused
    | events.GrantRevoked
    | events.GrantExpired
)


class Membership(Generic[A]):
    """One process as a member of one pool; every method says what to do next and does nothing."""

    def __init__(
        self,
        joining: Joining,
        *,
        make: Callable[..., A],
        fresh_epoch: Callable[[], ids.MemberEpoch],
        now_ns: Callable[[], int],
        report: Callable[[inputs.Input], None],
        wanted: Callable[[events.GrantIssued], bool] = lambda _: True,
    ) -> None:
        """Nothing is asked before `begin`.

        Args:
            joining: what it joins as.
            make: makes an attempt of its grant, as `BaseAttempt`.
            fresh_epoch: gives a value never used before, for each life.
            now_ns: a monotonic clock that counts suspension.
            report: sends a word for an attempt, from any thread.
            wanted: whether to start a grant; others are left to expire.
        """
        self.member = joining.member
        self.phase = Phase.NEW
        self.epoch = ids.MemberEpoch("")
        self.busy = 0
        """Attempts that hold a place: a start is asked for, or a handler is at work."""
        self._joining, self._make = joining, make
        self._fresh_epoch, self._now_ns, self._report = fresh_epoch, now_ns, report
        self._wanted = wanted
        self._join_at_ns: int | None = None
        self._beat_every_s = BEAT_EVERY_S_MAX
        self._starting: dict[AttemptKey, A] = {}
        self._started = Started[A]()
        self._held: deque[events.GrantIssued] = deque()
        self._owner_time = OwnerTime(now_ns)
        self._stood: tuple[int, set[AttemptKey]] = (0, set())
        """The instant of the newest standing start that was heard, and which began then."""
        self._has_left = False

    @property
    def running(self) -> int:
        """Attempts that a handler is at work on."""
        return self.busy - len(self._starting)

    @property
    def resting(self) -> bool:
        """Whether no attempt is under way, and every result is known to be durable.

        Where starts stand, one may be under way until the owner has taken the leave.
        """
        if self._starting or self._started:
            return False
        return self._has_left or not self._owner_time.is_known

    def begin(self) -> inputs.JoinRequested:
        """Ask to join, as a new life. The inbox must be open at a numeric offset before."""
        self.phase = Phase.JOINING
        self.epoch = self._fresh_epoch()
        self._join_at_ns = None
        self._held.clear()
        return inputs.JoinRequested(
            member=self.member,
            member_epoch=self.epoch,
            pool=self._joining.pool,
            places=self._joining.places,
            tenant=self._joining.tenant,
        )

    @property
    def beat_every_s(self) -> float:
        """How long the heart rests between two beats."""
        return NO_MEMBER_BEAT_S if self.phase is Phase.JOINING else self._beat_every_s

    def beat(self) -> list[inputs.HeartbeatReported]:
        """The sign of life that is due; it renews the leases of what this life has started.

        It offers the free places, unless handlers keep some that the owner takes for free.

        Returns: one, or more if there are many leases; none for who is no member.
        """
        if self.phase not in (Phase.MEMBER, Phase.LEAVING):
            return []
        offers = self.phase is Phase.MEMBER and self._started.is_as_told(self.epoch)
        sent_ms = units.Millis(self._now_ns() // units.NANOS_PER_MILLI) if offers else None
        return [*self._started.beats(self.member, self.epoch, sent_ms)]

    def leave(self) -> inputs.LeaveAnnounced | None:
        """Take no more grants; what was started is finished. None for who is no member."""
        was, self.phase = self.phase, Phase.LEAVING
        self._has_left = was is not Phase.MEMBER
        self._join_at_ns = None
        self._held.clear()
        if was not in (Phase.JOINING, Phase.MEMBER):
            return None
        return inputs.LeaveAnnounced(member=self.member, member_epoch=self.epoch)

    def tick(self) -> list[Step[A]]:
        """What is due because time passed."""
        if self._join_at_ns is None or self._now_ns() < self._join_at_ns:
            return []
        return [self.begin()]

    def heard(self, event: Any) -> list[Step[A]]:
        """What follows from a delivery. Deliveries come once each, in order."""
        match event:
            case events.GrantIssued():
                return self._granted(event)
            case events.StartAccepted():
                return self._accepted(event)
            case events.StartRefused() | events.GrantRevoked() | events.GrantExpired():
                return self._gone(event)
            case _ if isinstance(event, AboutStarted):
                self._started.heard(event)
                return []
            case events.PlacesOffered():
                self._owner_time.hear(event)
                return []
            case (
                events.MemberSlotGranted()
                | events.JoinRefused()
                | events.MemberLost()
                | events.MemberSlotReturned()
            ):
                return self._membership(event) if event.member_epoch == self.epoch else []
            case _:
                return [Told(event)]

    def ended(self) -> list[Step[A]]:
        """A handler is done and its result is sent: one place is free."""
        self.busy -= 1
        return self._start_held()

    def durable(self, attempt: A) -> None:
        """The result is on the broker: only now is the delivery given up (requirements R64)."""
        self._started.drop(attempt)

    def _granted(self, grant: events.GrantIssued) -> list[Step[A]]:
        key = _key(grant)
        if grant.member_epoch != self.epoch or key in self._starting or key in self._started:
            return []
        is_wanted = self.phase is Phase.MEMBER and self._wanted(grant)
        if grant.started_ms is not None:
            return self._stands(grant, grant.started_ms, is_wanted=is_wanted)
        if not is_wanted:
            return []
        # After a loss, handlers of the life before may still hold places.
        if self.busy >= self._joining.places:
            self._held.append(grant)
            return []
        return [self._start(grant)]

    def _start(self, grant: events.GrantIssued) -> inputs.StartRequested:
        self.busy += 1
        attempt = self._make(grant, report=self._report, now_ns=self._now_ns)
        self._starting[_key(grant)] = attempt
        return attempt.start_request()

    def _stands(
        self, grant: events.GrantIssued, started_ms: units.Millis, *, is_wanted: bool
    ) -> list[Step[A]]:
        """A standing start: what does not run must be given back, since it counts as started."""
        key, (newest_ms, known) = _key(grant), self._stood
        if started_ms < newest_ms or key in known:
            return []  # the owner's time never goes back: heard before
        self._stood = (started_ms, known if started_ms == newest_ms else set())
        self._stood[1].add(key)
        attempt = self._make(
            grant,
            report=self._report,
            now_ns=self._now_ns,
            waited_ns=self._waited_ns(grant, started_ms),
        )
        if is_wanted and self.busy < self._joining.places:
            self.busy += 1
            self._starting[key] = attempt
            return []
        # A heartbeat without an offer comes first, or the place would be taken for free again.
        alive = inputs.HeartbeatReported(member=self.member, member_epoch=self.epoch)
        return [alive, attempt.ended(Result(outcome=Outcome.NOT_SENT))]

    def _waited_ns(self, grant: events.GrantIssued, started_ms: units.Millis) -> int:
        epoch = grant.authority_epoch
        since_ns = self._owner_time.since_ns(started_ms, authority_epoch=epoch)
        # What nothing proves to be fresh is too late.
        return (grant.send_within_ms + 1) * units.NANOS_PER_MILLI if since_ns is None else since_ns

    def _start_held(self) -> list[Step[A]]:
        steps: list[Step[A]] = []
        while self._held and self.busy < self._joining.places:
            steps.append(self._start(self._held.popleft()))
        return steps

    def _accepted(self, event: events.StartAccepted) -> list[Step[A]]:
        attempt = self._starting.pop(_key(event), None)
        if attempt is None:
            return []
        self._started.add(attempt)
        return [Run(attempt)]

    def _gone(
        self, event: events.StartRefused | events.GrantRevoked | events.GrantExpired
    ) -> list[Step[A]]:
        key = _key(event)
        self._held = deque(grant for grant in self._held if _key(grant) != key)
        if self._starting.pop(key, None) is None:
            return []
        self.busy -= 1
        return self._start_held()

    def _membership(
        self,
        event: events.MemberSlotGranted
        | events.JoinRefused
        | events.MemberLost
        | events.MemberSlotReturned,
    ) -> list[Step[A]]:
        if self.phase is Phase.LEAVING:
            self._has_left = not isinstance(event, events.MemberSlotGranted)
            return []
        match event:
            case events.MemberSlotGranted():
                self.phase = Phase.MEMBER
                if event.lease_ms is not None:
                    lease_s = event.lease_ms / 1000
                    self._beat_every_s = min(BEAT_EVERY_S_MAX, lease_s / BEATS_PER_LEASE)
                return [*self.beat()]
            case events.MemberLost() | events.MemberSlotReturned():
                return [self.begin()]
            case events.JoinRefused() if event.code == codes.Code.EPOCH_SUPERSEDED:
                return [self.begin()]
            case events.JoinRefused() if _temporary(event.code):
                self.phase = Phase.JOINING
                self._join_at_ns = self._now_ns() + JOIN_AGAIN_NS
                return []
            case events.JoinRefused():
                return [Barred(event.code)]
            case _:
                assert_never(event)


def _key(named: Named) -> AttemptKey:
    return (named.operation, named.epoch)


def _temporary(code: str) -> bool:
    return code not in set(codes.Code) or codes.CODES[codes.Code(code)].temporary
