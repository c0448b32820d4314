"""Workers that follow the handshake on their own clocks, die, stop past their leases, come back."""

from collections.abc import Callable

from schemas import events as e
from schemas import inputs as i
from schemas.codec import decode
from schemas.ids import MemberEpoch, MemberId
from schemas.journal import Position
from schemas.topics import Topic
from schemas.units import Millis, Tokens
from tests.simulation.clock import MILLI, HostClock
from tests.simulation.crew import (
    LATE_MS,
    LEASE_MS,
    OFFERS,
    PLACES,
    POOL,
    RHO_PPM,
    SEND_WITHIN_MS,
    TRANSIT_MS,
    TTL_MS,
    Crew,
    Life,
    Start,
)
from tests.simulation.faults import Faults
from tests.simulation.outbox import lane_of
from tests.simulation.provider import CALL_MS_MAX, Attempt, Call


class Member:
    """One worker process of the pool, over all its lives."""

    def __init__(self, name: str, crew: Crew, faults: Faults) -> None:
        self.name, self.faults = MemberId(name), faults
        self._crew, self._random, self._clock = crew, crew.random, crew.clock
        self._inbox = crew.public.records[lane_of(Topic.DELIVERIES, name)]
        self._monotonic = HostClock(
            crew.clock,
            base_ms=crew.random.randrange(10**6),
            drift_ppm=crew.random.randint(-40, 40),
        )
        self._lives = 0
        self.starts: dict[Attempt, Start] = {}
        self._stopped_until_us = self._mute_until_us = 0
        self._begin()

    @property
    def life(self) -> Life:
        return self.name, self._life

    def _begin(self) -> None:
        """A new life: fix the place in the inbox first, then ask for a member slot."""
        self._lives += 1
        self._life = MemberEpoch(f"life-{self._lives}")
        remembers = self._random.random() < self.faults.old_names
        self._old = [lease for lease in self._held() if remembers]
        self.starts.clear()
        self._next = len(self._inbox)
        self._seen: Position | None = None
        self._is_member = False
        self._offer: e.PlacesOffered | None = None
        self._said_ms = self._monotonic.now_ms()
        self._send(
            i.JoinRequested(
                member=self.name, member_epoch=self._life, pool=POOL, places=PLACES, tenant=None
            )
        )

    def heal(self, faults: Faults) -> None:
        self.faults = faults
        self._stopped_until_us = self._mute_until_us = 0

    def step(self) -> None:
        self._suffer()
        if self._clock.now_us < self._stopped_until_us:
            return
        for record in self._inbox[self._next :]:
            self._next += 1
            if self._seen is None or record.position > self._seen:
                self._seen = record.position
                if record.key == self.name:
                    self._hear(decode(record.value))
        silence_ms = self._monotonic.now_ms() - self._said_ms
        if self._is_member and silence_ms > TTL_MS // 3:
            self._beat()
        elif not self._is_member and silence_ms > 4 * TTL_MS:
            self._begin()

    def _suffer(self) -> None:
        random, faults = self._random, self.faults
        if random.random() < faults.member_crash:
            self._crew.excused.add(self.life)
            self._begin()
        if random.random() < faults.member_stop:
            self._crew.excused.add(self.life)
            span_ms = random.choice((100, LEASE_MS + 100, 2 * LEASE_MS))
            self._stopped_until_us = self._clock.now_us + span_ms * MILLI
        if random.random() < faults.lost_heartbeats:
            self._crew.excused.add(self.life)
            span_ms = random.choice((100, LEASE_MS, 2 * LEASE_MS))
            self._mute_until_us = self._clock.now_us + span_ms * MILLI

    def _beat(self) -> None:
        self._said_ms = self._monotonic.now_ms()
        if self._clock.now_us < self._mute_until_us:
            return
        leases = (*self._held(), *self._old)
        beat = i.HeartbeatReported(
            member=self.name, member_epoch=self._life, leases=leases,
            sent_ms=Millis(self._said_ms) if self._random.random() < OFFERS else None,
        )  # fmt: skip
        is_late = self._random.random() < self.faults.late_heartbeat
        late_ms = self._random.randint(50, 400) if is_late else 0
        self._clock.after(late_ms * MILLI, lambda: self._send(beat))

    def _held(self) -> list[i.LeaseName]:
        """What it thinks it has a lease for."""
        held = [start.grant for start in self.starts.values() if start.is_held]
        return [i.LeaseName(operation=one.operation, epoch=one.epoch) for one in held]

    def _hear(self, told: e.Event) -> None:
        if getattr(told, "member_epoch", None) != self._life:
            return
        match told:
            case e.MemberSlotGranted():
                self._is_member = True
                self._beat()
            case e.MemberLost() | e.MemberSlotReturned() | e.JoinRefused():
                self._crew.excused.add(self.life)
                self._begin()
            case e.PlacesOffered():
                self._offer = told
            case e.GrantIssued():
                self._ask(told)
            case e.StartAccepted():
                self._work(self.starts[told.operation, told.incarnation, told.epoch])
            case e.StartRefused():  # a repeat is refused while the call runs, or after its result
                start = self.starts[told.operation, told.incarnation, told.epoch]
                start.is_held &= start.called
            case e.RenewRefused():
                self._let_go(told)
            case _:
                pass

    def _let_go(self, told: e.RenewRefused) -> None:
        named = (told.operation, told.epoch)
        self._old = [one for one in self._old if (one.operation, one.epoch) != named]
        for (operation, _, epoch), start in self.starts.items():
            if start.called and (operation, epoch) == named:
                start.is_held = False

    def _ask(self, grant: e.GrantIssued) -> None:
        key = (grant.operation, grant.incarnation, grant.epoch)
        if key in self.starts:
            return
        now_ms = self._monotonic.now_ms()
        if grant.started_ms is not None:
            assert self._offer is not None, "Expected an offer before a standing start"
            waited_ms = self._owner_ms_at_most(self._offer, now_ms) - grant.started_ms
            self.starts[key] = Start(grant, now_ms - max(0, waited_ms))
            return
        self.starts[key] = Start(grant, now_ms)
        if self._random.random() < self.faults.claim_first:
            self._send(self._about(i.ClaimRequested, grant))
        self._send(self._about(i.StartRequested, grant))

    @staticmethod
    def _owner_ms_at_most(offer: e.PlacesOffered, now_ms: int) -> int:
        """Its time now: what it told, and all that has passed since it was asked, and drift."""
        passed_ms = now_ms - offer.sent_ms + 1
        return offer.time_ms + passed_ms + 1 + passed_ms * RHO_PPM // 1_000_000

    def _work(self, start: Start) -> None:
        """Send in time, or say that nothing was sent."""
        delay_ms = self._monotonic.now_ms() - start.sent_ms + 1
        if start.called:
            return
        if delay_ms >= SEND_WITHIN_MS:
            self._report(start, "not_sent")
            return
        start.called = True
        grant = start.grant
        self._crew.called[grant.operation, grant.incarnation, grant.epoch] = self._clock.now_us
        if start.grant.turns_max is not None:
            self._loop(start)
        else:
            self._call(start, delay_ms)

    # -- a run -----------------------------------------------------------------------------------

    def _loop(self, start: Start) -> None:
        """A tool loop: turns of its own, a checkpoint after each, and one turn too many."""
        start.checkpoint = start.grant.checkpoint
        self._later(self._lasts_ms(60), start, lambda: self._turn(start))

    def _turn(self, start: Start) -> None:
        grant, start.turns = start.grant, start.turns + 1
        assert grant.turns_max is not None, "Expected a run"
        self._crew.submit_turn(grant, start.checkpoint + start.turns)
        start.checkpoint += 1
        told = {"number": start.checkpoint, "state_ref": f"after {start.checkpoint}"}
        self._send(self._about(i.CheckpointReported, grant, **told))
        if start.turns > grant.turns_max:
            self._report(start, "success")
        else:
            self._later(self._lasts_ms(60), start, lambda: self._turn(start))

    # -- a call ----------------------------------------------------------------------------------

    def _call(self, start: Start, delay_ms: int) -> None:
        grant, random = start.grant, self._random
        arrives_us = random.randint(0, TRANSIT_MS * MILLI)
        ends_us = arrives_us + self._lasts_ms(40) * MILLI
        now_us = self._clock.now_us
        call = Call(
            (grant.operation, grant.incarnation, grant.epoch),
            now_us + arrives_us,
            grant.tokens,
            grant.output_tokens_max,
            now_us + ends_us,
            outcome=self._outcome(),
        )
        self._clock.after(arrives_us, lambda: self._crew.provider.arrive(call))
        self._send(self._about(i.SendReported, grant, send_delay_ms=Millis(delay_ms)))
        if random.random() < self.faults.ambiguous:  # the connection breaks, the call goes on
            ends_us = random.randint(arrives_us, ends_us)
            self._later(ends_us // MILLI + 1, start, lambda: self._report(start, "unknown"))
        else:
            self._later(ends_us // MILLI + 1, start, lambda: self._report(start, call.outcome))

    def _lasts_ms(self, short_ms: int) -> int:
        is_long = self._random.random() < self.faults.long_call
        return self._random.randint(*((100, CALL_MS_MAX) if is_long else (1, short_ms)))

    def _outcome(self) -> str:
        drawn = self._random.random()
        if drawn < self.faults.failed_call:
            return self._random.choice(("retryable", "terminal"))
        return "throttled" if drawn > 1 - self.faults.throttle else "success"

    # -- what is sent ----------------------------------------------------------------------------

    def _later(self, span_ms: int, start: Start, happens: Callable[[], None]) -> None:
        """In this life; a stopped process does it when it goes on, however late that is."""
        life = self._life

        def due() -> None:
            if self._life != life:
                return
            left_us = self._stopped_until_us - self._clock.now_us
            if left_us > 0:
                self._clock.after(left_us + self._random.randint(0, MILLI), due)
            else:
                happens()

        self._clock.after(span_ms * MILLI, due)

    def _report(self, start: Start, outcome: str) -> None:
        grant, random, faults = start.grant, self._random, self.faults
        used = Tokens(random.randint(0, grant.output_tokens_max))
        word = self._about(
            i.ResultReported, grant, outcome=outcome, prompt_tokens=grant.prompt_tokens,
            output_tokens=used, retry_after_ms=Millis(random.choice((5, 60))),
        )  # fmt: skip
        start.is_held = False
        self._crew.over[grant.operation, grant.incarnation, grant.epoch] = self._clock.now_us
        if random.random() < faults.lost_result:
            return
        late_ms = random.choice(LATE_MS) if random.random() < faults.late_result else 0
        self._clock.after(late_ms * MILLI, lambda: self._send(word))
        if random.random() < faults.late_usage:
            usage = self._about(
                i.UsageReported, grant, unit="tokens", prompt_tokens=grant.prompt_tokens,
                output_tokens=used, evidence="usage",
            )  # fmt: skip
            self._clock.after(random.choice(LATE_MS) * MILLI, lambda: self._send(usage))

    @staticmethod
    def _about(kind: type, grant: e.GrantIssued, **fields: object) -> i.Input:
        about: i.Input = kind(
            tenant=grant.tenant, operation=grant.operation, incarnation=grant.incarnation,
            attempt=grant.attempt, epoch=grant.epoch, member=grant.member,
            member_epoch=grant.member_epoch, **fields,
        )  # fmt: skip
        return about

    def _send(self, word: i.Input) -> None:
        copies = 2 if self._random.random() < self.faults.repeat else 1
        for _ in range(copies):
            span_us = self._random.randint(50, 3_000)
            self._clock.after(span_us, lambda: self._put(word))

    def _put(self, word: i.Input) -> None:
        self._crew.inputs.send(word)
