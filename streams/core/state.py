"""What the fold remembers, composed of its mechanisms; the verbs that several folds share.

What is bounded (domains, tenants' counters, windows, members, live attempts) is in memory and
mirrored to rows. What is not (operations, waiting work, timers) is only in rows. Memory is a
function of the rows, so that an owner that opened its tables decides as one that never stopped.
"""

from collections.abc import Iterator

from schemas.ids import DomainId, MemberId, OperationId, TenantId
from schemas.inputs import CellConfig
from schemas.phase import Phase
from schemas.units import Millis, Tokens

from .budgets import Clocking
from .configured import Configured, Domain, tenant_scope
from .counters import Counter
from .fairness import Lane
from .operations import AttemptRow, Charge, OperationRow
from .outcomes import Header
from .pools import Pools, place_of
from .queues import Queue, Waiting
from .rows import KINDS, CellRow, WaitingRow
from .tables import Image, Overlay, Rows, Table, pack
from .timers import Kind, Timers
from .windows import Window, parse_bucket_key, takeover_term_ms


class State:
    """Everything that `decide` reads and `evolve` changes."""

    def __init__(self, rows: Rows) -> None:
        """Open the state that the rows hold; empty rows are a cell before its first entry."""
        self.rows = Overlay(rows, KINDS)
        self.cell: CellRow = self.rows.get(Table.CELL, b"") or CellRow()
        self.positions: dict[tuple[int, int], int] = {}
        self.config = Configured(self.rows)
        self.pools = Pools(self.rows)
        self.attempts: dict[OperationId, AttemptRow] = {}
        self._waiting: dict[TenantId, tuple[bytes, WaitingRow]] = {}
        self._live: dict[OperationId, OperationRow] = {}
        """Operations with an attempt, so that each of its inputs need not read them again."""
        self.dirty: dict[DomainId, None] = {}
        """Domains in which something may have become grantable since the last pass."""
        self._load()
        self.timers = Timers(self.rows)

    # -- what an entry says beside its events --------------------------------------------------

    def begin(self, header: Header) -> None:
        """Take over the header of the next entry: time, epoch, inputs taken.

        A takeover gives every live charge its takeover term and makes every domain dirty, since a
        new owner knows nothing of what its predecessor had already looked at.
        """
        cell = self.cell
        cell.generation, cell.height, cell.epoch = header.generation, header.height, header.epoch
        cell.time_ms = header.time_ms
        cell.stepped_ms = Millis(cell.stepped_ms + (header.time_step_ms or 0))
        self.rows.put(Table.CELL, b"", cell)
        for run in header.inputs:
            self.positions[run.topic, run.partition] = run.next
            self.rows.put(Table.TAKEN, pack(run.topic, run.partition), run.next)
        if header.takeover:
            for window in self.config.windows.values():
                window.age(self.clocking.term_ms)
            self.dirty = dict.fromkeys(sorted(self.config.domains))
        for window in self.config.windows.values():
            if window.leave(Millis(cell.time_ms - cell.stepped_ms)):
                self.touch(DomainId(window.domain))

    def drain(self) -> list[Image]:
        """The images of all rows that this entry changed.

        They must be in the store before the next `begin`, or reads would miss them.
        """
        return self.rows.drain()

    @property
    def now_ms(self) -> Millis:
        """Time of the entry that was begun last."""
        return self.cell.time_ms

    @property
    def clocking(self) -> Clocking:
        """What window exits depend on."""
        term_ms = takeover_term_ms(self.config.bounds.clock_bound_ms)
        return Clocking(self.cell.stepped_ms, self.cell.epoch, term_ms)

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
            if domain.row.count:
                exits = [window.next_exit_ms for window in domain.all_windows()]
                due += [Millis(e + self.cell.stepped_ms) for e in exits if e is not None]
        return min((instant for instant in due if instant is not None), default=None)

    # -- what a decision asks ------------------------------------------------------------------

    def operation(self, operation: OperationId) -> OperationRow | None:
        """What is known of the id."""
        live = self._live.get(operation)
        if live is not None:
            return live
        found: OperationRow | None = self.rows.get(Table.OPERATION, operation)
        return found

    def waiting(self, tenant: TenantId) -> WaitingRow:
        """How much of the tenant waits."""
        found = self._waiting.get(tenant)
        if found is None:
            key = pack(tenant)
            found = self._waiting[tenant] = key, self.rows.get(Table.TENANT, key) or WaitingRow()
        return found[1]

    def held(self, attempt: AttemptRow) -> Iterator[tuple[Charge, Window]]:
        """The charges of a reservation, each with its window.

        A dimension that was empty may have been dropped since, and its name given to slots: its
        charge had left.
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

    def vacate(self, operation: OperationId, attempt: AttemptRow) -> None:
        """The attempt holds its member's place no longer."""
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
        """Its lane and its tenant's counter there, at the weight and rank now in force."""
        lane = self.lane(row.domain, row.lane)
        counter = lane.counter(row.tenant)
        config = self.config.tenant(row.tenant)
        counter.rank = config.rank
        lane.reweigh(counter, config.weight)
        return lane, counter

    def put(self, operation: OperationId, row: OperationRow) -> None:
        """Keep the operation's row."""
        self.rows.put(Table.OPERATION, operation, row)
        if row.phase in (Phase.GRANTED, Phase.STARTED):
            self._live[operation] = row
        else:
            self._live.pop(operation, None)

    def queue_up(self, operation: OperationId, row: OperationRow) -> None:
        """Make it eligible at the place of its sequence."""
        lane, counter = self.counted(row)
        place = place_of(row.pool, row.member)
        idle = not counter.queues
        queue = counter.queues.get(place)
        if queue is None:
            queue = Queue(self.rows, row.domain, row.lane, place, row.tenant)
            counter.queues[place] = queue
        queue.add(
            Waiting(
                row.sequence,
                operation,
                Tokens(row.prompt_tokens + row.output_tokens_max),
                row.deadline_ms,
            )
        )
        if idle:
            lane.activate(counter)
        row.phase = Phase.WAITING
        self.put(operation, row)
        self.touch(row.domain)

    def unqueue(self, row: OperationRow) -> None:
        """Take it out of its queue."""
        lane, counter = self.counted(row)
        place = place_of(row.pool, row.member)
        queue = counter.queues[place]
        queue.remove(row.sequence)
        if not queue.count:
            del counter.queues[place]
            if not counter.queues:
                lane.deactivate(counter)
        self.touch(row.domain)

    def count_waiting(self, row: OperationRow, change: int) -> None:
        """Count it in the caps of tenant, domain and cell, or no longer."""
        size = change * row.payload_bytes
        waiting, domain = self.waiting(row.tenant), self.config.domains[row.domain]
        waiting.count += change
        waiting.bytes += size
        self.rows.put(Table.TENANT, self._waiting[row.tenant][0], waiting)
        domain.row.count += change
        domain.row.bytes += size
        self.put_domain(domain)
        self.cell.waiting += change
        self.cell.waiting_bytes += size

    def wait(self, operation: OperationId, row: OperationRow) -> None:
        """It waits from now on: caps, queue, and the timer of its deadline."""
        self.count_waiting(row, +1)
        self.timers.set(row.deadline_ms, Kind.DEADLINE, operation)
        self.queue_up(operation, row)

    def leave_queue(self, operation: OperationId, row: OperationRow) -> None:
        """It waits no longer, in whatever way it did."""
        if row.phase is Phase.PARKED:
            self.rows.delete(Table.PARKED, pack(row.domain, row.sequence))
        else:
            self.unqueue(row)
        self.count_waiting(row, -1)
        self.timers.unset(row.deadline_ms, Kind.DEADLINE, operation)

    def finish(self, operation: OperationId, row: OperationRow, phase: Phase) -> None:
        """It is over; the guard remembers it up to its horizon."""
        row.phase = phase
        row.forget_ms = Millis(self.now_ms + self.config.bounds.guard_horizon_ms)
        self.timers.set(row.forget_ms, Kind.FORGET, operation)
        self.put(operation, row)

    def put_attempt(self, operation: OperationId, attempt: AttemptRow) -> None:
        """Keep the live attempt's row."""
        self.attempts[operation] = attempt
        self.rows.put(Table.ATTEMPT, operation, attempt)

    def put_domain(self, domain: Domain) -> None:
        """Keep the domain's row."""
        self.rows.put(Table.DOMAIN, domain.row_key, domain.row)

    def _load(self) -> None:
        load = self.rows.load
        for key, position in load(Table.TAKEN):
            topic, partition = int.from_bytes(key[:8], "big"), int.from_bytes(key[8:], "big")
            self.positions[topic, partition] = position
        for key, row in load(Table.CONFIG):
            self.config.apply(key.decode().split("\x00")[1], row)
        for key, amount in load(Table.BUCKET):
            scope, name, dimension, aged, exit_at = parse_bucket_key(key)
            window = self.config.windows[scope, name, dimension]
            window.load_bucket(aged=aged, exit_at=exit_at, amount=amount)
        for key, row in load(Table.MEMBER):
            self.pools.load(MemberId(key[:-1].decode()), row)
        for key, life in load(Table.LIFE):
            self.pools.load_over(int.from_bytes(key, "big"), life)
        for key, attempt in load(Table.ATTEMPT):
            operation = OperationId(key)
            self.attempts[operation] = attempt
            self.pools.occupy(attempt.member, attempt.member_epoch, operation)
        for member in sorted(self.pools.members):
            self.pools.offer(member)
        for key, _ in load(Table.QUEUE):
            self._restore_queue(*key.decode().split("\x00")[:4])
        self.dirty = dict.fromkeys(sorted(self.config.domains))

    def _restore_queue(self, domain: str, lane_name: str, place: str, tenant: str) -> None:
        lane = self.lane(DomainId(domain), lane_name)
        counter = lane.counter(TenantId(tenant))
        counter.rank = self.config.tenant(TenantId(tenant)).rank
        if not counter.queues:
            lane.restore(counter)
        counter.queues[place] = Queue(self.rows, domain, lane_name, place, tenant)
