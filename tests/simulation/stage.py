"""A calm world on which a test plays one scene: nothing fails unless the scene makes it fail."""

from collections.abc import Callable
from random import Random

from schemas.codec import decode, encode
from schemas.entry import Entry
from schemas.ids import OwnerId
from schemas.journal import Pulse
from schemas.units import Millis
from streams.shell.authority import Authority, Role
from streams.shell.cell import Cell
from tests.simulation.auditor import accepted_of
from tests.simulation.clock import MILLI
from tests.simulation.faults import Faults
from tests.simulation.host import Host
from tests.simulation.world import World, owes_nothing

STRANGER = OwnerId(b"stranger" * 2)


class Stage:
    """Hosts of a calm world, started when the scene wants them."""

    def __init__(self) -> None:
        self.world = World(Random(1), Faults.none())
        self.world.members.clear()
        self.world.begin()
        self.x, self.y, _ = self.world.hosts

    def play(self, until: Callable[[], bool], *hosts: Host, within_ms: int = 2_000) -> int:
        """Step the hosts in turn until it is so; how long that took."""
        begun_us = self.world.clock.now_us
        while not until():
            spent_ms = (self.world.clock.now_us - begun_us) // MILLI
            assert spent_ms < within_ms, f"Expected it within {within_ms} ms"
            for host in hosts:
                host.step()
            self.world.clock.advance(200)
        return (self.world.clock.now_us - begun_us) // MILLI

    def wait(self, span_ms: int, *hosts: Host) -> None:
        """Step the hosts in turn for a while."""
        until_us = self.world.clock.now_us + span_ms * MILLI
        self.play(lambda: self.world.clock.now_us >= until_us, *hosts, within_ms=span_ms + 1)

    def own(self, host: Host) -> Cell:
        """Make the host the owner, at rest after its first entries."""
        if host.authority is None:
            host.start()
        self.play(lambda: self.is_at_rest(host), host)
        cell = self.authority(host).cell
        assert cell is not None
        return cell

    def is_at_rest(self, host: Host) -> bool:
        cell = self.authority(host).cell
        if cell is None or cell.next_step != "take" or not owes_nothing(self.authority(host)):
            return False
        positions = self.fold_positions(host)
        return all(
            positions.get(place, 0) == len(records)
            for place, records in self.world.inputs.records.items()
        )

    def fold_positions(self, host: Host) -> dict[tuple[int, int], int]:
        fold = self.authority(host).fold
        assert fold is not None
        return fold.state.positions

    @staticmethod
    def authority(host: Host) -> Authority:
        assert host.authority is not None
        return host.authority

    def role(self, host: Host) -> Role:
        return self.authority(host).role

    def pulses(self) -> int:
        return len(self.world.pulses.records)

    def accepted(self) -> list[tuple[int, Entry]]:
        return list(accepted_of(self.world.journal.records))

    def stranger(self, **changed: object) -> Entry:
        """An entry that would be accepted as a takeover, but for what is changed."""
        offset, head = self.accepted()[-1]
        fold_hash = self.next_hash()
        fields = {name: getattr(head, name) for name in Entry.__struct_fields__}
        fields |= {"previous": offset, "height": head.height + 1, "epoch": head.epoch + 1}
        fields |= {"owner": STRANGER, "takeover": True, "inputs": (), "events": ()}
        fields |= {"state_hash": fold_hash, "time_step_ms": None}
        return Entry(**{**fields, **changed})

    def next_hash(self) -> bytes:
        self.world.follow()
        return self.world.auditor.folded[self.accepted()[-1][0]]

    def put(self, entry: Entry) -> int:
        return self.world.journal.append(encode(entry)).offset

    def pulse(self, *, epoch: int) -> None:
        pulse = Pulse(epoch=epoch, height=0, owner=STRANGER, time_ms=Millis(0))
        self.world.pulses.append(encode(pulse))

    def in_flight(self) -> Entry:
        """The last record of the journal, as an entry."""
        entry = decode(self.world.journal.records[-1].value)
        assert isinstance(entry, Entry)
        return entry
