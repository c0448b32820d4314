"""Memory made from the rows: an owner that opened its tables decides as one that never stopped."""

from schemas.ids import DomainId, MemberEpoch, MemberId, OperationId, TenantId

from . import waiting
from .counters import Counter
from .exits import parse_bucket_key
from .fairness import Lane
from .queues import Queue
from .state import State
from .tables import Rows, Table


def open_state(rows: Rows) -> State:
    """The state that the rows hold; empty rows are a cell before its first entry."""
    state = State(rows)
    _load_config(state)
    _load_members(state)
    state.holds.load()
    for key, credit in state.rows.load(Table.RETRY):
        name, tenant, _ = key.decode().split("\x00")
        state.credit[DomainId(name), TenantId(tenant)] = credit
    _restore_queues(state)
    state.dirty = dict.fromkeys(sorted(state.config.domains))
    return state


def _load_config(state: State) -> None:
    rows, config = state.rows, state.config
    for key, position in rows.load(Table.TAKEN):
        topic, partition = int.from_bytes(key[:8], "big"), int.from_bytes(key[8:], "big")
        state.positions[topic, partition] = position
    for key, row in rows.load(Table.CONFIG):
        config.apply(key.decode().split("\x00")[1], row)
    for key, amount in rows.load(Table.BUCKET):
        scope, name, dimension, epoch, exit_at = parse_bucket_key(key)
        config.windows[scope, name, dimension].load_bucket((epoch, exit_at), amount)


def _load_members(state: State) -> None:
    rows, pools = state.rows, state.pools
    for key, row in rows.load(Table.MEMBER):
        pools.load(MemberId(key[:-1].decode()), row)
    for key, life in rows.load(Table.LIFE):
        pools.load_over(int.from_bytes(key, "big"), life)
    for key, attempt in rows.load(Table.ATTEMPT):
        operation = OperationId(key)
        state.attempts[operation] = attempt
        if attempt.uncertain is None:
            state.occupy(operation, attempt)
    for key, leases in rows.load(Table.LEASE):
        name, member_epoch, _ = key.decode().split("\x00")
        state.lives[MemberId(name), MemberEpoch(member_epoch)] = leases
    for member in sorted(pools.members):
        pools.offer(member)


def _restore_queues(state: State) -> None:
    active: dict[Counter, Lane] = {}
    for key, _ in state.rows.load(Table.QUEUE):
        domain, name, place, tenant, _ = key.decode().split("\x00")
        lane = state.lane(DomainId(domain), name)
        counter = lane.counter(TenantId(tenant))
        counter.rank = state.config.tenant(TenantId(tenant)).rank
        waiting.enter(state, lane, counter, Queue(state.rows, domain, name, place, tenant))
        active[counter] = lane
    for counter in sorted(active, key=lambda counter: counter.row.position):
        active[counter].restore(counter)
