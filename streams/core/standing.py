"""Standing starts: where effects may be repeated, a free place stands for a start request (R185).

    heartbeat, with the member's clock ─► PlacesOffered: the member knows the owner's time from it
    a free place, and a head that fits ─► GrantIssued, LeaseClaimed, StartAccepted, in one entry

No answer tells the member that its call may go out *now*: from the owner's time in the offer and
what has passed since on its own clock it knows a bound of the owner's time, and does not send
later than send-within after the grant. A step moves what was granted before it, so that times are
compared less all steps. A successor's time may be ahead by the takeover term, which no charge
granted by it has, so that an offer holds under its own owner only.
"""

from collections.abc import Sequence

from schemas.events import Event, PlacesOffered
from schemas.ids import MemberId
from schemas.inputs import HeartbeatReported
from schemas.units import Millis

from .operations import OperationRow
from .state import State

REPEATABLE = frozenset(("read_only", "keyed"))
"""Effect classes of which an attempt that nobody knows of may be followed by another one."""


def offer(state: State, asked: HeartbeatReported) -> Sequence[Event]:
    """The answer to a heartbeat whose member knows what a standing start asks of it."""
    if asked.sent_ms is None:
        return []
    pool = state.config.pools.get(state.pools.members[asked.member].pool)
    if pool is None or not pool.standing:
        return []
    return [
        PlacesOffered(
            member=asked.member,
            member_epoch=asked.member_epoch,
            sent_ms=asked.sent_ms,
            time_ms=state.window_now_ms,
            authority_epoch=state.cell.epoch,
        )
    ]


def started_ms(state: State, row: OperationRow, member: MemberId) -> Millis | None:
    """When the operation starts if it is granted to the member now; None if that is asked for."""
    pool = state.config.pools.get(row.pool)
    if pool is None or not pool.standing or row.effect not in REPEATABLE:
        return None
    known = state.pools.members[member]
    return state.window_now_ms if known.offered_epoch == state.cell.epoch else None


# -- folds --------------------------------------------------------------------------------------


def offered(state: State, event: PlacesOffered) -> None:
    """Until the member's next heartbeat, which offers them again, or does not."""
    row = state.pools.members[event.member]
    row.offered_epoch = event.authority_epoch
    state.pools.put(event.member, row)
