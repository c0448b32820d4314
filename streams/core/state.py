"""What the fold remembers, composed of its mechanisms; the verbs that several folds share.

What is bounded (domains, tenants' counters, windows, members, live attempts) is in memory and
mirrored to rows. What is not (operations, waiting work, timers) is only in rows. Memory is a
function of the rows, so that an owner that opened its tables decides as one that never stopped.
"""

from collections.abc import Iterator

from schemas.ids import DomainId, MemberEpoch, MemberId, OperationId, PoolId, TenantId
from schemas.inputs import CellConfig
from schemas.phase import Phase
from schemas.units import Millis

from . import lanes
from .budgets import Clocking
from .configured import Configured, Domain, tenant_scope
from .counters import Counter
from .fairness import Lane
from .holds import Holds
from .operations import ATTEMPTED, AttemptRow, Charge, OperationRow
from .outcomes import Header
from .pools import NOBODY, LifeRow, Pools
from .rows import KINDS, CellRow, WaitingRow
from .tables import Image, Overlay, Rows, Table, pack
from .timers import Kind, Timers
from .windows import Window


class State:
    """Everything that `decide` reads and `evolve` changes."""

    def __init__(self, rows: Rows) -> None:
        """What is read on demand; `opening` brings what is in memory from the start."""
        self.rows = Overlay(rows, KINDS)
        self.cell: CellRow = self.rows.get(Table.CELL, b"") or CellRow()
        self.positions: dict[tuple[int, int], int] = {}
        self.config = Configured(self.rows)
        self.config.aging.epoch = self.cell.epoch
        self.pools = Pools(self.rows)
        self.attempts: dict[OperationId, AttemptRow] = {}
        self._waiting: dict[TenantId, tuple[bytes, WaitingRow]] = {}
        self._live: dict[OperationId, OperationRow] = {}
        """Operations with an attempt, so that each of its inputs need not read them again."""
        self.dirty: dict[DomainId, None] = {}
        """Domains in which something may have become grantable since the last pass."""
        self.lives: dict[tuple[MemberId, MemberEpoch], LifeRow] = {}
        """Lives of members with leases to look at."""
        self.credit: dict[tuple[DomainId, TenantId], int] = {}
        """Retries left, in hundredths, where some are missing."""
        self.timers = Timers(self.rows)
        self.holds = Holds(self.rows, self.timers)

    # -- what an entry says beside its events --------------------------------------------------

    def begin(self, header: Header) -> None:
        """Take over the header of the next entry: time, epoch, inputs taken.

        A takeover gives every live charge its takeover term; a new owner looks at every domain.
        """
        cell = self.cell
        cell.generation, cell.height, cell.epoch = header.generation, header.height, header.epoch
        cell.time_ms = header.time_ms
        self.config.aging.epoch = cell.epoch
        self.rows.put(Table.CELL, b"", cell)
        if header.time_step_ms:
            cell.stepped_ms = Millis(cell.stepped_ms + header.time_step_ms)
            self._postpone(header.time_step_ms)
        for run in header.inputs:
            self.positions[run.topic, run.partition] = run.next
            self.rows.put(Table.TAKEN, pack(run.topic, run.partition), run.next)
        if header.takeover:
            for window in self.config.windows.values():
                window.age(self.config.aging.term_ms)
            self.dirty = dict.fromkeys(sorted(self.config.domains))
        for domain in self.config.domains.values():
            self._leave_windows(domain)
            if domain.row.cooldown_ms is not None and domain.row.cooldown_ms <= cell.time_ms:
                domain.row.cooldown_ms = None
                self.put_domain(domain)
                self.touch(domain.name)
        if header.time_step_ms:
            for window in self.config.windows.values():
                window.look_again()

    def _leave_windows(self, domain: Domain) -> None:
        for window in domain.due.pass_to(self.window_now_ms):
            if window.leave(self.window_now_ms):
                self.touch(domain.name)
                domain.freed(TenantId(window.tenant))

    def drain(self) -> list[Image]:
        """The images of all rows that this entry changed; to be stored before the next `begin`."""
        return self.rows.drain()

    @property
    def now_ms(self) -> Millis:
        """Time of the entry that was begun last."""
        return self.cell.time_ms

    @property
    def window_now_ms(self) -> Millis:
        """Now, in the windows' own time: a step of entry time moves no exit and no pace."""
        return Millis(self.cell.time_ms - self.cell.stepped_ms)

    @property
    def lease_shift_ms(self) -> Millis:
        """By how much lease time is behind entry time: all time steps and all silences."""
        return Millis(self.cell.stepped_ms + self.cell.silent_ms)

    @property
    def lease_now_ms(self) -> Millis:
        """Now, in lease time."""
        return Millis(self.cell.time_ms - self.lease_shift_ms)

    @property
    def clocking(self) -> Clocking:
        """What window exits depend on."""
        return Clocking(self.window_now_ms, self.cell.stepped_ms, self.cell.epoch)

    @property
    def bounds(self) -> CellConfig:
        """The cell's active bounds."""
        return self.config.bounds

    @property
    def topic_ids(self) -> dict[str, str]:
        """Ids of the cell's topics by full name, as the first entry recorded them."""
        return self.cell.topic_ids

    @property
    def more(self) -> bool:
        """Whether a pass reached its bound, so that the next entry must follow at once."""
        return bool(self.dirty) or self.timers.due(self.now_ms) is not None

    @property
    def next_due_ms(self) -> Millis | None:
        """The next instant at which time alone may change something; None if nothing waits."""
        due = [self.timers.next_ms()]
        for domain in self.config.domains.values():
            if domain.row.cooldown_ms is not None:
                due.append(domain.row.cooldown_ms)
            elif domain.row.count and not domain.row.blocked:
                freed_ms = domain.due.next_ms()
                due.append(freed_ms and Millis(freed_ms + self.cell.stepped_ms))
        return min((instant for instant in due if instant is not None), default=None)

    # -- what a decision asks ------------------------------------------------------------------

    def operation(self, operation: OperationId) -> OperationRow | None:
        """What is known of the id."""
        live = self._live.get(operation)
        if live is not None:
            return live
        found: OperationRow | None = self.rows.get(Table.OPERATION, operation)
        return found

    def pool_of(self, operation: OperationId) -> PoolId:
        """The pool of an operation that is known."""
        row = self.operation(operation)
        assert row is not None, f"Expected to know {operation.hex()}"
        return row.pool

    def free_member(self, place: str) -> MemberId | None:
        """Who would run the next operation of this place: a member, or nobody yet if it is open."""
        pool = self.config.pools.get(PoolId(place))
        if pool is None or pool.unclaimed_max is None:
            return self.pools.free_member(place)
        return NOBODY if self.pools.unclaimed(PoolId(place)) < pool.unclaimed_max else None

    def waiting(self, tenant: TenantId) -> WaitingRow:
        """How much of the tenant waits."""
        found = self._waiting.get(tenant)
        if found is None:
            key = pack(tenant)
            found = self._waiting[tenant] = key, self.rows.get(Table.TENANT, key) or WaitingRow()
        return found[1]

    def held(self, attempt: AttemptRow) -> Iterator[tuple[Charge, Window]]:
        """The charges of a reservation, each with its window.

        An empty dimension may have been dropped since, and its name given to slots.
        """
        for charge in attempt.charges:
            scope = charge.level if charge.level == "domain" else tenant_scope(attempt.tenant)
            window = self.config.windows.get((scope, attempt.domain, charge.dimension))
            if window is None or (charge.exit_ms and window.config.kind == "concurrency"):
                continue
            yield charge, window

    # -- verbs that several folds share --------------------------------------------------------

    def touch(self, domain: DomainId) -> None:
        """Something in the domain may have become grantable."""
        self.dirty[domain] = None

    def touch_waiting(self) -> None:
        """A place became free: any domain in which something waits may use it."""
        for name, domain in self.config.domains.items():
            if domain.row.count:
                self.touch(name)

    def occupy(self, operation: OperationId, attempt: AttemptRow) -> None:
        """The attempt holds a place of its member; in an open pool it waits for one."""
        if attempt.member == NOBODY:
            self.pools.offer_to_all(self.pool_of(operation), operation)
        else:
            self.pools.occupy(attempt.member, attempt.member_epoch, operation)

    def vacate(self, operation: OperationId, attempt: AttemptRow) -> None:
        """The attempt holds its member's place no longer."""
        if attempt.member == NOBODY:
            self.pools.withdraw(self.pool_of(operation), operation)
        else:
            self.pools.vacate(attempt.member, attempt.member_epoch, operation)
        self.touch_waiting()

    def lane(self, domain: DomainId, lane: str) -> Lane:
        """The lane of the domain, made when it is first used."""
        configured = self.config.domains[domain]
        lanes = configured.lanes
        if lane not in lanes:
            lanes[lane] = Lane(self.rows, domain, lane, configured.config)
        return lanes[lane]

    def counted(self, row: OperationRow | AttemptRow) -> tuple[Lane, Counter]:
        """Its lane and its tenant's counter there, at the weights and rank now in force."""
        lane = self.lane(row.domain, row.lane)
        lanes.follow_weight(lane)
        counter = lane.counter(row.tenant)
        config = self.config.tenant(row.tenant)
        lane.rank(counter, config.rank)
        lane.reweigh(counter, config.weight)
        return lane, counter

    def put(self, operation: OperationId, row: OperationRow) -> None:
        """Keep the operation's row."""
        self.rows.put(Table.OPERATION, operation, row)
        if row.phase in ATTEMPTED:
            self._live[operation] = row
        else:
            self._live.pop(operation, None)

    def finish(self, operation: OperationId, row: OperationRow, phase: Phase) -> None:
        """It is over; the guard remembers it up to its horizon."""
        row.phase = phase
        row.forget_ms = Millis(self.now_ms + self.config.bounds.guard_horizon_ms)
        self.timers.set(row.forget_ms, Kind.FORGET, operation)
        self.put(operation, row)

    def unfinish(self, operation: OperationId, row: OperationRow) -> None:
        """It is not over after all."""
        assert row.forget_ms is not None, "Expected an operation that was over"
        self.timers.unset(row.forget_ms, Kind.FORGET, operation)
        row.forget_ms = None

    def put_attempt(self, operation: OperationId, attempt: AttemptRow) -> None:
        """Keep the live attempt's row."""
        self.attempts[operation] = attempt
        self.rows.put(Table.ATTEMPT, operation, attempt)

    def drop_attempt(self, operation: OperationId) -> AttemptRow:
        """The newest attempt is over."""
        self.rows.delete(Table.ATTEMPT, operation)
        return self.attempts.pop(operation)

    def put_domain(self, domain: Domain) -> None:
        """Keep the domain's row."""
        self.rows.put(Table.DOMAIN, domain.row_key, domain.row)

    def _postpone(self, by_ms: int) -> None:
        """A step of time moves every lease and hold."""
        for key, life in self.lives.items():
            self.watch_leases(key, life, Millis(life.due_ms + by_ms))
        uncertain = [(o, a) for o, a in self.attempts.items() if a.uncertain is not None]
        for operation, attempt in (*uncertain, *self.holds.all()):
            assert attempt.uncertain is not None, "Expected an uncertain attempt"
            self.holds.unwatch(operation, attempt)
            attempt.uncertain.postpone(by_ms)
            self.holds.watch(operation, attempt)
            self.put_uncertain(operation, attempt)

    def put_uncertain(self, operation: OperationId, attempt: AttemptRow) -> None:
        """Keep the row of an uncertain attempt, the newest or not."""
        if self.attempts.get(operation) is attempt:
            self.put_attempt(operation, attempt)
        else:
            self.holds.keep(operation, attempt)

    def watch_leases(
        self, key: tuple[MemberId, MemberEpoch], life: LifeRow, due_ms: Millis
    ) -> None:
        """Look at the leases of this life at that instant."""
        subject = pack(*key)
        if key in self.lives:
            self.timers.unset(life.due_ms, Kind.LEASE, subject)
        life.due_ms = due_ms
        self.lives[key] = life
        self.rows.put(Table.LEASE, subject, life)
        self.timers.set(due_ms, Kind.LEASE, subject)
