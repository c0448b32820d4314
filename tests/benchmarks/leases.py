"""What leases cost: a heartbeat that renews a thousand, and ten thousand that are due at once."""

import statistics
import time
from collections.abc import Iterator

from schemas import events as e
from schemas import inputs as i
from schemas.codec import decode, encode
from schemas.ids import MemberEpoch, MemberId
from schemas.topics import Topic, full_name
from schemas.units import Millis
from tests.benchmarks import raw
from tests.benchmarks.cell import CELL, POOL, Inputs, configure, submission
from tests.benchmarks.crew import identity, result
from tests.benchmarks.result import Result
from tests.benchmarks.stage import Stage
from tests.support import core as c

LEASES = 1_000
"""Of one member, as many as its places nearly allow."""
ROUNDS = 20
MEMBERS = 10
LEASE_MS = Millis(8_000)
QUIET_S = 1.5
"""How long the probe runs before the leases are due, and its idle latency is taken from."""
DUE_S = 60.0


def heartbeat(_: Stage) -> Iterator[Result]:
    """`heartbeat-1000`: the owner's part of it: decode, decide, fold, row images, encode events."""
    cell = c.Core()
    cell.run(c.domain(c.dimension("slots", 2 * LEASES)), c.pool(places_max=1_024))
    cell.run(c.join(places=1_024))
    cell.run(c.heartbeat())
    grants: list[e.GrantIssued] = []
    for first in range(0, LEASES, 100):
        asked = [c.submitted("a", str(n)) for n in range(first, first + 100)]
        grants += c.only(e.GrantIssued, cell.settle_down(*asked))
    cell.run(*[c.start(grant) for grant in grants])
    leases = tuple(i.LeaseName(operation=g.operation, epoch=g.epoch) for g in grants)
    value = encode(i.HeartbeatReported(member="m", member_epoch="e1", leases=leases))
    took_ms = []
    for _round in range(ROUNDS):
        begun = time.perf_counter()
        events = cell.run(decode(value), after_ms=1_000)
        for event in events:
            encode(event)
        took_ms.append((time.perf_counter() - begun) * 1_000)
        assert c.only(e.LeasesRenewed, events), "Expected a renewal"
    yield Result(name="heartbeat-1000", value=statistics.median(took_ms), unit="ms")


class _Holders:
    """Members that start everything and end nothing, and one that ends what it started at once."""

    def __init__(self, stage: Stage) -> None:
        self._inputs = Inputs(stage.bootstrap, stage.prefix, linger_ms=1)
        journal = full_name(stage.prefix, CELL, Topic.JOURNAL)
        self._journal = raw.consumer(stage.bootstrap, journal)
        self.held: dict[MemberId, list[e.GrantIssued]] = {}
        self.unknown = 0
        self._sent_s: dict[bytes, float] = {}
        self.late_ms: list[tuple[float, float]] = []
        """When a result was recorded, and how long after it was sent."""

    def join(self, member: str, places: int) -> None:
        who = {"member": MemberId(member), "member_epoch": MemberEpoch("e1")}
        self._inputs.send(i.JoinRequested(**who, pool=POOL, places=places))
        self._inputs.send(i.HeartbeatReported(**who))

    def ask(self, first: int, count: int) -> None:
        for number in range(first, first + count):
            self._inputs.send(submission(number))

    def renew_all(self) -> None:
        for member, grants in self.held.items():
            leases = tuple(i.LeaseName(operation=g.operation, epoch=g.epoch) for g in grants)
            word = i.HeartbeatReported(member=member, member_epoch=MemberEpoch("e1"), leases=leases)
            self._inputs.send(word)
        self._inputs.producer.flush(raw.WAIT_S)

    def work(self, probe: MemberId | None = None) -> None:
        """Hear what was decided; the probe's starts are ended at once."""
        self._inputs.producer.poll(0)
        message = self._journal.poll(0.002)
        if message is None:
            return
        entry = decode(message.value() or b"")
        for one in entry.events:
            event = decode(one.body)
            match event:
                case e.GrantIssued():
                    if event.member != probe:
                        self.held.setdefault(event.member, []).append(event)
                    self._inputs.send(i.StartRequested(**identity(event)))
                case e.StartAccepted() if event.member == probe:
                    self._sent_s[event.operation] = time.perf_counter()
                    self._inputs.send(result(event))
                case e.ResultRecorded():
                    now = time.perf_counter()
                    self.late_ms.append((now, (now - self._sent_s[event.operation]) * 1_000))
                case e.OutcomeMarkedUnknown():
                    self.unknown += 1
                case _:
                    pass

    def close(self) -> None:
        self._journal.close()


def due_at_once(stage: Stage) -> Iterator[Result]:
    """`leases-due`: the longest wait of a result while every lease ends; the floor is idle p99."""
    members = 2 if stage.quick else MEMBERS
    wanted = members * LEASES
    stage.found_cell()
    stage.wait_for_role(stage.scheduler("owner"), "owner")
    configure(stage.bootstrap, stage.prefix, lease_ms=LEASE_MS, member_ttl_ms=Millis(600_000))
    holders = _Holders(stage)
    for number in range(members):
        holders.join(f"holder-{number}", LEASES)
    holders.ask(0, wanted)
    ends_at = time.monotonic() + DUE_S
    while sum(map(len, holders.held.values())) < wanted:
        assert time.monotonic() < ends_at, "Expected every place to be taken"
        holders.work()
    holders.renew_all()
    probe = MemberId("probe")
    holders.join(probe, 2)
    number, begun = wanted, time.perf_counter()
    ends_at = time.monotonic() + DUE_S
    while holders.unknown < wanted:
        assert time.monotonic() < ends_at, f"Expected {wanted} unknown, got {holders.unknown}"
        if number - wanted <= len(holders.late_ms):
            holders.ask(number, 2)
            number += 2
        holders.work(probe)
    first_s = begun + QUIET_S
    idle = [took for at, took in holders.late_ms if at < first_s]
    busy = [took for at, took in holders.late_ms if at >= first_s]
    holders.close()
    floor = statistics.quantiles(idle, n=100, method="inclusive")[98]
    name = f"leases-due-{wanted}"
    yield Result(name=name, value=max(busy), unit="ms", floor=floor)
