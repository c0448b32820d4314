"""Which lane goes next, and what bulk leaves to the others (scheduling.md section 4).

Lanes take turns as tenants do, each by a counter with a start tag: the smallest key goes next.
Beside it bulk keeps a reserve free in every dimension, so that whoever comes in another lane finds
room. Its floor: beside others that wait, and with the smallest key of all, it may take the reserve.

    key of interactive, weight 95    key of bulk, weight 5    next, at equal costs of 950
    0                                0                        interactive (ties: in this order)
    10                               0                        bulk, which is owed its floor
    10, 20 .. 190                    190                      interactive, nineteen times; bulk
"""

from collections.abc import Callable, Iterable, Sequence

from schemas.inputs import DimensionConfig
from schemas.lanes import BULK, LANES
from schemas.units import Nanos

from .configured import Domain
from .costs import Cost
from .counters import correct, key_of, raise_to, reweigh
from .fairness import Lane
from .operations import AttemptRow
from .windows import Window

Keep = Callable[[Window], int]
"""What must stay free in a window beside the cost."""


def in_order(domain: Domain) -> Sequence[Lane]:
    """Lanes in which something waits, the one whose turn it is first."""
    waiting = [lane for lane in domain.lanes.values() if not lane.is_idle]
    if len(waiting) > 1:
        waiting.sort(key=lambda lane: (effective(domain, lane), LANES.index(lane.name)))
    return waiting


def effective(domain: Domain, lane: Lane) -> int:
    """Its key; whoever waited blocked keeps a credit of one largest cost."""
    row = lane.row
    return max(key_of(row), domain.row.v - domain.row.cost_max_ns // row.weight)


def lift_at_pick(domain: Domain, lane: Lane) -> int:
    """The lift generation that a pick of this lane would leave."""
    return lane.row.lift + (effective(domain, lane) > key_of(lane.row))


# -- what bulk leaves free ----------------------------------------------------------------------


def reserve(dimension: DimensionConfig, percent: int) -> int:
    """What bulk leaves free: its part of the limit, but one slot at least is for anybody."""
    part = -(-dimension.limit * percent // 100)
    if dimension.kind == "concurrency":
        return min(part, max(dimension.limit - 1, 0))
    return part


def is_owed_floor(order: Sequence[Lane]) -> bool:
    """Whether bulk may take the reserve: others wait beside it, and its turn comes first."""
    return len(order) > 1 and order[0].name == BULK


def to_keep(
    domain: Domain, order: Sequence[Lane], lane: Lane, windows: Iterable[Window], cost: Cost
) -> Keep | None:
    """What a head must leave free; None if it may take all, as in any lane but bulk.

    A head above limit minus reserve can be served by the floor alone. It gets it as soon as its
    lane comes first, even where nobody waits beside it, or it would wait for company.
    """
    if lane.name != BULK:
        return None
    percent = domain.config.bulk_reserve_percent
    if is_owed_floor(order) or (order[0].name == BULK and _needs_floor(windows, cost, percent)):
        return None
    return keeping(percent)


def least_to_keep(domain: Domain, order: Sequence[Lane], lane: Lane) -> Keep | None:
    """What every head of the lane must leave free, whichever it is."""
    if lane.name != BULK or order[0].name == BULK:
        return None
    return keeping(domain.config.bulk_reserve_percent)


def keeping(percent: int) -> Keep:
    """The reserve in each dimension."""
    return lambda window: reserve(window.config, percent)


def _needs_floor(windows: Iterable[Window], cost: Cost, percent: int) -> bool:
    return any(
        window.config.limit - reserve(window.config, percent) < cost.amount(window.config)
        for window in windows
    )


# -- folds --------------------------------------------------------------------------------------


def wake(domain: Domain, lane: Lane) -> None:
    """Its first operation waits: a lane earns nothing by idleness either."""
    if key_of(lane.row) < domain.row.v:
        raise_to(lane.row, domain.row.v)
        lane.put_row()


def follow_weight(lane: Lane) -> None:
    """Let its counter have the weight that is configured."""
    if lane.row.weight != lane.weight:
        reweigh(lane.row, lane.weight)
        lane.put_row()


def follow_weights(domain: Domain) -> None:
    """The domain has another configuration; lanes in which nothing waits follow when they are used.

    Only the others are sure to be in memory, and what is in memory may not matter.
    """
    for lane in domain.lanes.values():
        if not lane.is_idle:
            follow_weight(lane)


def charge(domain: Domain, lane: Lane, cost_ns: Nanos) -> None:
    """A turn of the lane; both rows are kept by the rest of the grant's fold."""
    key, row = effective(domain, lane), lane.row
    if key > key_of(row):
        raise_to(row, key)
    domain.row.v = max(domain.row.v, key)
    row.served += cost_ns


def settle(domain: Domain, lane: Lane, delta_ns: int, of: AttemptRow | None) -> None:
    """The cost of a reservation turned out otherwise, or it was returned.

    Args:
        domain: the lane's.
        lane: charged for it.
        delta_ns: what is charged beside the estimate.
        of: the reservation; None if no grant's lift is known any more: as from before the last.
    """
    if delta_ns:
        weight, lift = (of.lane_weight, of.lane_lift) if of else (lane.row.weight, -1)
        correct(lane.row, delta_ns, weight=weight, lift=lift, v=domain.row.v)
        lane.put_row()
