"""Workers that follow the handshake on their own clocks, crash, and come back with a new life."""

from dataclasses import dataclass
from random import Random

from schemas import events as e
from schemas import inputs as i
from schemas.codec import decode
from schemas.ids import MemberEpoch, MemberId, PoolId
from schemas.journal import Position
from schemas.topics import Topic
from schemas.units import Millis, Tokens
from tests.simulation.clock import MILLI, HostClock, SimulatedClock
from tests.simulation.faults import Faults
from tests.simulation.inputs import InputTopics
from tests.simulation.outbox import PublicTopics, lane_of
from tests.simulation.provider import Call, Provider

PLACES = 2
TTL_MS = 150
SEND_WITHIN_MS = 30
TRANSIT_MS = 8
POOL = PoolId("workers")


@dataclass
class Start:
    """What a worker keeps on its own disk about a start it asked for."""

    grant: e.GrantIssued
    sent_ms: int
    life: MemberEpoch
    called: bool = False


class Member:
    """One worker process of the pool, over all its lives."""

    def __init__(
        self, name: str, random: Random, clock: SimulatedClock, faults: Faults, *,
        inputs: InputTopics, public: PublicTopics, provider: Provider,
    ) -> None:  # fmt: skip
        self.name, self.faults = MemberId(name), faults
        self._random, self._clock, self._inputs = random, clock, inputs
        self._inbox = public.records[lane_of(Topic.DELIVERIES, name)]
        self._provider = provider
        self._monotonic = HostClock(
            clock, base_ms=random.randrange(10**6), drift_ppm=random.randint(-40, 40)
        )
        self.starts: dict[tuple[bytes, int, int], Start] = {}
        self._lives = 0
        self._begin()

    def _begin(self) -> None:
        """A new life: fix the place in the inbox first, then ask for a member slot."""
        self._lives += 1
        self._life = MemberEpoch(f"life-{self._lives}")
        self._next = len(self._inbox)
        self._seen: Position | None = None
        self._is_member = False
        self._said_ms = self._monotonic.now_ms()
        self._send(
            i.JoinRequested(
                member=self.name, member_epoch=self._life, pool=POOL, places=PLACES, tenant=None
            )
        )

    def step(self) -> None:
        if self._random.random() < self.faults.member_crash:
            self._begin()
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

    def _beat(self) -> None:
        self._said_ms = self._monotonic.now_ms()
        self._send(i.HeartbeatReported(member=self.name, member_epoch=self._life))

    def _hear(self, told: e.Event) -> None:
        if getattr(told, "member_epoch", None) != self._life:
            return
        match told:
            case e.MemberSlotGranted():
                self._is_member = True
                self._beat()
            case e.MemberLost() | e.MemberSlotReturned() | e.JoinRefused():
                self._begin()
            case e.GrantIssued():
                key = (told.operation, told.incarnation, told.epoch)
                if key not in self.starts:
                    self.starts[key] = Start(told, self._monotonic.now_ms(), self._life)
                    self._send(self._about(i.StartRequested, told))
            case e.StartAccepted():
                self._call(self.starts[told.operation, told.incarnation, told.epoch])
            case _:
                pass

    def _call(self, start: Start) -> None:
        """Send in time, or say that nothing was sent."""
        delay_ms = self._monotonic.now_ms() - start.sent_ms + 1
        if start.called or delay_ms >= SEND_WITHIN_MS:
            if not start.called:
                self.report_not_sent(start)
            return
        start.called = True
        grant, random = start.grant, self._random
        arrives_us = random.randint(0, TRANSIT_MS * MILLI)
        ends_us = arrives_us + random.randint(1, 40) * MILLI
        now_us = self._clock.now_us
        call = Call(
            (grant.operation, grant.incarnation, grant.epoch),
            now_us + arrives_us,
            grant.tokens,
            now_us + ends_us,
        )
        self._clock.after(arrives_us, lambda: self._provider.arrive(call))
        self._send(self._about(i.SendReported, grant, send_delay_ms=Millis(delay_ms)))
        self._clock.after(ends_us, lambda: self._report(start))

    def _report(self, start: Start) -> None:
        grant = start.grant
        used = Tokens(self._random.randint(0, grant.output_tokens_max))
        self._send(
            self._about(
                i.ResultReported, grant, outcome="success",
                prompt_tokens=grant.prompt_tokens, output_tokens=used,
            )
        )  # fmt: skip

    def report_not_sent(self, start: Start) -> None:
        self._send(self._about(i.ResultReported, start.grant, outcome="not_sent"))

    def recover(self, key: tuple[bytes, int, int]) -> None:
        """What a worker's own disk tells about a start of an earlier life that nobody closed."""
        start = self.starts.get(key)
        if start is not None and not start.called and start.life != self._life:
            self.report_not_sent(start)

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
        self._inputs.send(word)
