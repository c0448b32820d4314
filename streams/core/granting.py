"""From a head that fits to its grant, and all that the grant takes."""

from schemas.events import GrantIssued
from schemas.ids import MemberEpoch, MemberId, OperationId
from schemas.lanes import BULK
from schemas.phase import Phase
from schemas.units import Millis

from . import lanes, saving, standing, waiting
from .budgets import hold
from .configured import Domain
from .costs import Cost, cost_ns
from .counters import Counter
from .fairness import Lane
from .operations import AttemptRow
from .pools import NOBODY
from .state import State
from .timers import Kind

SEND_REPORT_FACTOR = 10
"""Windows shorter than ten times `send_within_ms` want the send delay right away (R173).

For longer ones it gains less than a tenth of the budget and costs an input a call, so that it comes
with the result, unless the domain wants it at once.
"""


def grant(
    state: State,
    domain: Domain,
    lane: Lane,
    candidate: waiting.Candidate,
    *,
    skipped: OperationId | None = None,
) -> GrantIssued:
    """The grant of a head that fits; `skipped` came first and did not fit."""
    head, member, counter = candidate
    row = state.operation(head.operation)
    assert row is not None
    config, cost = domain.config, domain.cost_of(head)
    hold_ms = counter.row.hold_ms or config.hold_initial_ms
    more = row.more
    return GrantIssued(
        tenant=row.tenant,
        operation=head.operation,
        incarnation=row.incarnation,
        attempt=row.starts + 1,
        epoch=row.epoch + 1,
        member=member,
        member_epoch=_life_of(state, member),
        claim_by_ms=min(Millis(state.now_ms + config.claim_by_ms), row.deadline_ms),
        user=row.user,
        pool=row.pool,
        domain=row.domain,
        lane=row.lane,
        tier=row.tier,
        connection=row.connection,
        effect=row.effect,
        payload_bytes=row.payload_bytes,
        payload_ref=row.payload_ref,
        prompt_tokens=row.prompt_tokens,
        output_tokens_max=row.output_tokens_max,
        deadline_ms=row.deadline_ms,
        send_within_ms=config.send_within_ms,
        report_send=config.report_send or _report_gains(domain),
        requests=cost.requests,
        tokens=cost.tokens,
        slots=cost.slots,
        cost_ns=cost_ns(domain.dimensions(), cost, hold_ms=hold_ms),
        weight=state.config.tenant(row.tenant).weight,
        lift=lane.lift_at_pick(counter),
        lane_key=lanes.effective(domain, lane),
        lane_weight=lane.row.weight,
        lane_lift=lanes.lift_at_pick(domain, lane),
        by_floor=lane.name == BULK and _takes_reserve(domain, counter, cost),
        config_version=domain.version,
        authority_epoch=state.cell.epoch,
        runtime_ms=more.runtime_ms,
        turns_max=more.turns_max,
        tools=more.tools,
        parent=more.parent,
        checkpoint=more.checkpoint,
        checkpoint_ref=more.checkpoint_ref,
        skipped=skipped,
        started_ms=standing.started_ms(state, row, member),
        money_micros=cost.money,
    )


def _report_gains(domain: Domain) -> bool:
    windows_ms = [w.config.window_ms for w in domain.windows if w.config.window_ms is not None]
    return any(ms < SEND_REPORT_FACTOR * domain.config.send_within_ms for ms in windows_ms)


def _life_of(state: State, member: MemberId) -> MemberEpoch:
    return MemberEpoch("") if member == NOBODY else state.pools.members[member].member_epoch


def _takes_reserve(domain: Domain, counter: Counter, cost: Cost) -> bool:
    percent = domain.config.bulk_reserve_percent
    return any(
        window.free - lanes.reserve(window.config, percent) < cost.amount(window.config) > 0
        for window in domain.levels(counter.tenant)
    )


# -- folds --------------------------------------------------------------------------------------


def granted(state: State, event: GrantIssued) -> None:
    """The operation leaves its queue and takes its whole cost and a place."""
    operation = event.operation
    row = state.operation(operation)
    assert row is not None
    domain = state.config.domains[event.domain]
    lane, counter = state.counted(row)
    lanes.charge(domain, lane, event.cost_ns)
    if event.skipped is not None:
        saving.passed_over(state, domain, event.skipped)
    counter.row.by_floor += event.by_floor
    lane.charge(counter, event.cost_ns)
    waiting.leave_queue(state, operation, row)
    row.phase, row.epoch = Phase.GRANTED, event.epoch
    state.put(operation, row)
    windows = domain.levels(event.tenant)
    attempt = AttemptRow(
        tenant=event.tenant,
        domain=event.domain,
        lane=event.lane,
        incarnation=event.incarnation,
        attempt=event.attempt,
        epoch=event.epoch,
        member=event.member,
        member_epoch=event.member_epoch,
        granted_ms=state.now_ms,
        claim_by_ms=event.claim_by_ms,
        requests=event.requests,
        prompt_tokens=event.prompt_tokens,
        output_tokens_max=event.output_tokens_max,
        slots=event.slots,
        cost_ns=event.cost_ns,
        weight=event.weight,
        lift=event.lift,
        lane_weight=event.lane_weight,
        lane_lift=event.lane_lift,
        config_version=event.config_version,
        send_within_ms=event.send_within_ms,
        charges=hold(windows, domain.cost_of(row), now_ms=state.window_now_ms),
        prices=domain.config.prices if event.requests else None,
    )
    state.put_attempt(operation, attempt)
    state.timers.set(event.claim_by_ms, Kind.CLAIM_BY, operation)
    state.occupy(operation, attempt)
