"""The values of all tables: together with `Table` the whole layout on disk."""

from typing import Any

import msgspec

from schemas.ids import CellId, MemberEpoch, MemberId, OperationId, TenantId
from schemas.inputs import CellConfig, DomainConfig, PoolConfig, TenantConfig
from schemas.units import Millis

from .counters import CounterRow, LaneRow
from .operations import AttemptRow, OperationRow
from .pools import LifeRow, MemberRow, PoolRow
from .queues import QueueRow, Waiting
from .tables import Table, pack
from .windows import WindowRow


class CellRow(msgspec.Struct, array_like=True, gc=False):
    """What is one per cell."""

    cell: CellId = CellId("")
    generation: int = 0
    height: int = -1
    epoch: int = 0
    time_ms: Millis = Millis(0)
    stepped_ms: Millis = Millis(0)
    sequence: int = 0
    """Last admission sequence given."""
    waiting: int = 0
    waiting_bytes: int = 0
    early_cancels: int = 0
    silent_ms: Millis = Millis(0)
    """Sum of the silences of the scheduler, which count for no lease."""
    topic_ids: dict[str, str] = {}


class WaitingRow(msgspec.Struct, array_like=True, gc=False):
    """How much of one tenant waits or is parked."""

    count: int = 0
    bytes: int = 0


class SkippedRow(msgspec.Struct, array_like=True, gc=False, kw_only=True):
    """A head that was passed over though its turn came first: it did not fit."""

    head: Waiting
    tenant: TenantId
    lane: str
    place: str
    since_ms: Millis
    """Window time."""
    skips: int = 0
    not_before_ms: Millis | None = None
    """Its earliest fit was too far to save for: it is first in line then, in window time."""


class DomainRow(msgspec.Struct, array_like=True, gc=False):
    """How much waits or is parked in a domain, and what the passes over it remember."""

    count: int = 0
    bytes: int = 0
    deferred_ms: Millis = Millis(-1)
    """When a deferral was last recorded."""
    review_from: int | None = None
    """Parked work from this sequence on is looked at again after a configuration change."""
    runs: int = 0
    """Runs among what waits."""
    cooldown_ms: Millis | None = None
    """It grants nothing until then."""
    blocked: bool = False
    """It grants nothing until it is configured again."""
    v: int = 0
    """Highest key of a lane at a pick; it never falls."""
    cost_max_ns: int = 0
    """Largest cost admitted so far in any lane."""
    skipped: list[SkippedRow] = []
    saver: int = 0
    """Sequence of the one among them whose whole cost must stay free; 0 for none."""

    @property
    def saving(self) -> SkippedRow | None:
        """The saver."""
        if not self.saver:
            return None
        return next(one for one in self.skipped if one.head.sequence == self.saver)

    def forget(self, sequence: int) -> None:
        """It waits no longer, and saves no longer."""
        self.skipped = [one for one in self.skipped if one.head.sequence != sequence]
        if self.saver == sequence:
            self.saver = 0

    def saves_at(self, place: str) -> bool:
        """Whether the saver waits for this place."""
        saver = self.saving
        return saver is not None and saver.place == place

    def forget_all(self, tenant: TenantId | None) -> None:
        """Another configuration, of the domain or of one tenant: what was counted is void."""
        for one in self.skipped:
            if tenant in (None, one.tenant):
                self.forget(one.head.sequence)


class ConfigRow(msgspec.Struct, array_like=True, gc=False):
    """One active piece of configuration."""

    version: int
    cell: CellConfig | None = None
    domain: DomainConfig | None = None
    tenant: TenantConfig | None = None
    pool: PoolConfig | None = None


class CancelRow(msgspec.Struct, array_like=True, gc=False):
    """A cancellation ahead of its submission."""

    reason: str
    until_ms: Millis


def cancel_key(operation: OperationId, tenant: TenantId) -> bytes:
    """Of an early cancellation: whoever guesses an id of another tenant is in nobody's way."""
    return operation + pack(tenant)


KINDS: dict[int, Any] = {
    Table.CELL: CellRow,
    Table.TAKEN: int,
    Table.CONFIG: ConfigRow,
    Table.OPERATION: OperationRow,
    Table.WAITING: Waiting,
    Table.QUEUE: QueueRow,
    Table.TIMER: bool,
    Table.TENANT: WaitingRow,
    Table.COUNTER: CounterRow,
    Table.LANE: LaneRow,
    Table.WINDOW: WindowRow,
    Table.MEMBER: MemberRow,
    Table.POOL: PoolRow,
    Table.ATTEMPT: AttemptRow,
    Table.CANCEL: CancelRow,
    Table.BUCKET: int,
    Table.DOMAIN: DomainRow,
    Table.PARKED: bytes,
    Table.LIFE: tuple[MemberId, MemberEpoch],
    Table.LEASE: LifeRow,
    Table.HOLD: AttemptRow,
    Table.RETRY: int,
}
"""What `Overlay` decodes each table to."""
