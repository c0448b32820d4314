"""One seeded world: three schedulers over one log, workers, a provider, and everything that fails.

First safety under all faults, then the world heals and everything admitted must end. The shell and
the core are the shipped ones; only ports are exchanged.
"""

import hashlib
from random import Random

from schemas.codec import decode, encode
from schemas.ids import OwnerId
from schemas.inputs import TopicIdentity
from schemas.journal import Entry, Pulse
from schemas.units import Millis
from streams.shell import genesis
from streams.shell.authority import Authority
from streams.shell.ports import Ports, Timing
from streams.shell.restore import Fold
from tests.simulation.auditor import Auditor
from tests.simulation.clock import MILLI, BrokerClock, SimulatedClock
from tests.simulation.crew import LEASE_MS, Crew
from tests.simulation.faults import Faults
from tests.simulation.host import Host
from tests.simulation.inputs import InputTopics, SimulatedInputs
from tests.simulation.journal import (
    TOPIC_ID,
    Log,
    PatientJournal,
    PatientWriter,
    SimulatedJournal,
    SimulatedPulses,
)
from tests.simulation.lives import Lives
from tests.simulation.members import Member
from tests.simulation.outbox import PublicTopics, SimulatedOutbox
from tests.simulation.provider import ALSO, Provider
from tests.simulation.reconciler import Reconciler
from tests.simulation.tables import Disk, SimulatedTables
from tests.simulation.workload import CELL, CLOCK_BOUND_MS, Workload, configuration

PREFIX = "simulated"
TIMING = Timing(
    pulse_ms=10, takeover_ms=60, takeover_spread_ms=30, append_timeout_ms=80,
    publish_stall_ms=150, first_read_ms=100, lag_entries_max=6,
)  # fmt: skip
SAFETY_MS = 1_300
HEALING_MS = 6_000
ENTRIES_MAX = 1_500
"""After healing everything must have ended within this many more entries."""


class Broken(AssertionError):
    """The world found something that must never be."""


def owes_nothing(authority: Authority) -> bool:
    """Whether the owner knows of every output of every entry that it is out."""
    cell, fold = authority.cell, authority.fold
    if cell is None or fold is None or fold.head is None:
        return False
    return cell._backpressure.published == fold.head.offset


class World:
    """All of it, from one seed."""

    def __init__(self, random: Random, faults: Faults | None = None) -> None:
        self._random = random
        self.faults = Faults.drawn(random) if faults is None else faults
        self.clock = SimulatedClock()
        self.broker = BrokerClock(self.clock, drift_ppm=random.randint(-40, 40))
        self.journal = Log(self.broker)
        self.pulses = Log(self.broker, "pulse-1")
        self.inputs, self.public, self.provider = (
            InputTopics(),
            PublicTopics(),
            Provider(random.choice(ALSO)),
        )
        self.topic_ids: dict[str, str] | None = {"journal": TOPIC_ID}
        self.auditor, self.lives = Auditor(), Lives()
        self._follower = Fold(SimulatedTables(Disk()), TOPIC_ID)
        self.hosts = [Host(name, self.clock, random, self.faults) for name in ("x", "y", "z")]
        for host in self.hosts:
            host.ports = self.ports
        self.workload = Workload(random, self.faults, self.inputs)
        self.crew = Crew(random, self.clock, self.inputs, self.public, self.provider,
                         self.workload.turn)  # fmt: skip
        names = ("worker-a", "worker-b")
        self.members = [Member(name, self.crew, self.faults) for name in names]
        self.reconciler = Reconciler(random, self.clock, self.inputs, self.provider, self.faults)

    @property
    def epoch(self) -> int:
        """Terms so far."""
        head = self._follower.head
        return 0 if head is None else head.epoch

    def ports(self, host: Host) -> Ports:
        return Ports(
            cell=CELL,
            prefix=PREFIX,
            journal=SimulatedJournal(host, self.journal),
            pulses=lambda: SimulatedPulses(host, self.pulses),
            inputs=lambda: SimulatedInputs(host, self.inputs),
            outbox=lambda: SimulatedOutbox(host, self.public),
            tables=lambda: SimulatedTables(
                host.disk, point=host.point, believed=self.auditor.believed(host.name)
            ),
            topic_ids=lambda: None if host.is_cut else self.topic_ids,
            monotonic=host.monotonic,
            watch=host.watch,
            owner_id=lambda: OwnerId(self._random.randbytes(16)),
            chance_ms=lambda most_ms: self._random.randint(0, most_ms),
            timing=TIMING,
        )

    def run(self) -> str:
        """The whole story.

        Returns: the hash of the journal.

        Raises:
            Broken: with every finding.
        """
        self.begin()
        for host in self.hosts:
            host.start()
        while self.clock.now_us < SAFETY_MS * MILLI:
            self._tick()
            self._trouble()
            if self._random.random() < 0.015:
                self.workload.step()
        self._heal()
        self._live()
        self._judge()
        digest = hashlib.sha256()
        for record in self.journal.records:
            digest.update(f"{record.offset} {record.append_ms} ".encode() + record.value)
        return digest.hexdigest()

    def begin(self) -> None:
        """Genesis and the first configuration; nobody decides yet."""
        operator = Host("operator", self.clock, self._random, Faults.none())
        genesis.begin(
            PatientJournal(operator, self.journal),
            PatientWriter(operator, self.pulses),
            cell=CELL,
            topics=[TopicIdentity(name="journal", id=TOPIC_ID, partitions=1)],
            generation=1,
            owner=OwnerId(self._random.randbytes(16)),
        )
        for proposed in configuration(self._random, self.provider.also):
            self.inputs.send(proposed)

    def _tick(self) -> None:
        self.clock.advance(self._random.choice((50, 150, 300, 600)))
        self._random.choice(self.hosts).step()
        self._random.choice(self.members).step()
        if self._random.random() < 0.2:
            self.follow()

    def _trouble(self) -> None:
        random, faults = self._random, self.faults
        host = random.choice(self.hosts)
        if random.random() < faults.kill:
            host.kill()
        if random.random() < faults.pause:
            host.pause(random.choice((15, 70, 150, 300)))
        if random.random() < faults.cut:
            host.cut(random.choice((15, 70, 150, 300)))
        if random.random() < faults.blackout:
            span_ms = random.choice((300, LEASE_MS + 100, LEASE_MS + 300))
            for each in self.hosts:
                each.pause(span_ms)
        if random.random() < faults.stranger:
            self.journal.append(self._strange())
        if random.random() < faults.new_leader:
            self.broker.change_leader(random.randint(-CLOCK_BOUND_MS, CLOCK_BOUND_MS) // 2)

    def _strange(self) -> bytes:
        """A record that no reader may accept: bytes, other words, or an entry that is not due."""
        random = self._random
        value = random.choice(self.journal.records).value
        match random.choice(("bytes", "word", "again", "cut", "owner")):
            case "bytes":
                return b"\x00" + random.randbytes(19)  # ours would begin with the marker
            case "word":
                return encode(Pulse(epoch=9, height=9, owner=OwnerId(bytes(16)), time_ms=Millis(9)))
            case "again":
                return value
            case "cut":
                return value[: len(value) // 2]
            case _:
                return self._usurped()

    def _usurped(self) -> bytes:
        """The right predecessor and height under a stranger's name, and no takeover."""
        self.follow()
        head = self._follower.head
        assert head is not None, "Expected genesis before strangers"
        usurped = Entry(
            generation=head.generation,
            previous=head.offset,
            height=head.height + 1,
            epoch=head.epoch,
            owner=OwnerId(bytes(16)),
            takeover=False,
            time_ms=Millis(1),
            clock_shift_ms=Millis(0),
            published=-1,
            core_version=1,
            state_hash=self._follower.state_hash,
            inputs=(),
            events=(),
        )
        return encode(usurped)

    def follow(self) -> None:
        """A follower sees every record, often before the entry's own writer knows."""
        for record in self.journal.records[self._follower.next_offset :]:
            entry = self._follower.apply(record)
            if entry is None:
                continue
            self.auditor.folded[record.offset] = self._follower.state_hash
            self.lives.begin(entry)
            for recorded in entry.events:
                event = decode(recorded.body)
                self.reconciler.hear(event)
                for _ in self.lives.see(event):
                    pass  # the auditor complains, at the end and with the place

    def _heal(self) -> None:
        self.faults = self.reconciler.faults = Faults.none()
        for member in self.members:
            member.heal(self.faults)
        for host in self.hosts:
            host.heal(self.faults)

    def _live(self) -> None:
        until_us, entries = self.clock.now_us + HEALING_MS * MILLI, len(self.auditor.folded)
        while not self._is_at_rest():
            self._tick()
            if self.clock.now_us > until_us:
                return  # the auditor says what has not ended
            if len(self.auditor.folded) > entries + ENTRIES_MAX:
                raise Broken(f"Expected rest after {ENTRIES_MAX} entries, but they go on")

    def _is_at_rest(self) -> bool:
        """Everything ended, every input taken, everything out."""
        if not self.lives.admitted or self.lives.open or self.lives.held:
            return False
        if self._follower.next_offset < len(self.journal.records):
            return False
        positions = self._follower.state.positions
        if any(positions.get(p, 0) < len(r) for p, r in self.inputs.records.items()):
            return False
        for host in self.hosts:
            authority = host.authority
            if authority is None or authority.cell is None or authority.fold is None:
                continue
            if authority.fold.next_offset == len(self.journal.records):
                return owes_nothing(authority)
        return False

    def findings(self) -> list[str]:
        """What the auditor and the provider say of the history so far."""
        found = self.auditor.findings(
            self.journal.records, self.inputs, self.public, self.workload.sent, self.crew
        )
        doubled = (f"{attempt} was called twice" for attempt in self.provider.doubled())
        return [*found, *self.provider.overshoot(), *doubled]

    def _judge(self) -> None:
        self.follow()
        found = self.findings()
        if found:
            raise Broken("\n".join(found))
