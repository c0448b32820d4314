"""One bounded pass: from a free place to a grant, in the order of the domain's policy.

A head that does not fit is passed over, so that no budget idles while another head fits (R28).
"""

from collections.abc import Generator, Sequence
from contextlib import closing
from functools import partial
from operator import itemgetter

from schemas.codes import Code
from schemas.events import (
    Event,
    GrantIssued,
    OperationDeferred,
    OperationExpired,
    OperationParked,
)
from schemas.ids import MemberEpoch, MemberId
from schemas.phase import Phase
from schemas.units import Millis

from . import standing, waiting
from .budgets import check, cost_ns, cost_of, earliest_ms, hold, never_fits
from .configured import Domain
from .counters import Counter
from .fairness import Lane, Policy
from .operations import AttemptRow
from .outcomes import Binds, Fits, Paced
from .pools import NOBODY
from .queues import Waiting
from .state import State
from .timers import Kind

SEND_REPORT_FACTOR = 10
"""Windows shorter than ten times `send_within_ms` want the send delay right away (R173).

For longer ones it gains less than a tenth of the budget and costs an input a call, so that it comes
with the result, unless the domain wants it at once.
"""


def next_decision(state: State, domain: Domain) -> Sequence[Event]:
    """The next thing to decide in a domain: a grant, or a head that must leave its queue.

    Returns: empty when the pass over the domain is complete.
    """
    if domain.row.blocked or domain.row.cooldown_ms is not None:
        return []
    blocked: tuple[Counter, Waiting, Binds | Paced] | None = None
    for lane in domain.lanes.values():
        with closing(_candidates(state, domain, lane)) as candidates:
            for head, member, counter in candidates:
                if head.deadline_ms <= state.now_ms:  # its timer is still behind others
                    return [_expired(state, counter, head, "deadline")]
                windows = domain.levels(counter.tenant)
                fit = check(windows, cost_of(head), now_ms=state.window_now_ms)
                if isinstance(fit, Fits):
                    return [_grant(state, domain, lane, counter, head, member)]
                leaving = _must_leave(state, domain, counter, head)
                if leaving is not None:
                    return [leaving]
                blocked = blocked or (counter, head, fit)
                if _exhausted(domain, state.window_now_ms):
                    break
    return _deferral(state, domain, *blocked) if blocked else []


Candidate = tuple[Waiting, MemberId, Counter]
"""A head that may be granted, the member that would run it, and whose it is."""
_HEAD = itemgetter(0)


def _candidates(state: State, domain: Domain, lane: Lane) -> Generator[Candidate, None, None]:
    """Heads whose pool has a free place, in the order of the policy; of one tenant oldest first.

    FIFO is an order of heads, not of tenants.
    """
    with closing(lane.in_order()) as counters:
        if lane.policy is Policy.FIFO:
            found = [one for counter in counters for one in _open(state, domain, counter)]
            yield from sorted(found, key=_HEAD)
        else:
            for counter in counters:
                yield from _open(state, domain, counter)


def _open(state: State, domain: Domain, counter: Counter) -> list[Candidate]:
    found: list[Candidate] = []
    for place, queue in counter.queues.items():
        member = state.free_member(place)
        if member is not None and state.config.runs(place, domain.name):
            found.append((queue.head(), member, counter))
    if len(found) > 1:
        found.sort(key=_HEAD)
    return found


def _exhausted(domain: Domain, now_ms: Millis) -> bool:
    """Whether no request or slot is to be had: every call needs one, so no other head fits either.

    Runs need neither.
    """
    return not domain.row.runs and any(
        (window.free < 1 or window.opens_ms > now_ms)
        and window.config.unit in ("requests", "slots")
        for window in domain.windows
    )


def _must_leave(
    state: State, domain: Domain, counter: Counter, head: Waiting
) -> OperationParked | OperationExpired | None:
    """A head that no time helps: configuration made it unfit, or it can only fit too late."""
    windows = domain.levels(counter.tenant)
    cost = cost_of(head)
    never = never_fits(windows, cost)
    if never is not None:
        return OperationParked(
            tenant=counter.tenant,
            operation=head.operation,
            reason=Code.NEVER_FITS,
            level=never.level,
            dimension=never.dimension,
        )
    # No exit lies beyond this, so that a later deadline needs no look at the buckets.
    furthest = max(w.config.reset_uncertainty_ms + (w.config.window_ms or 0) for w in windows)
    furthest += domain.config.send_within_ms + domain.config.transit_ms + state.clocking.term_ms
    if head.deadline_ms > state.now_ms + 2 * furthest:
        return None
    earliest = earliest_ms(windows, cost, now_ms=state.window_now_ms)
    if earliest is None or earliest + state.cell.stepped_ms < head.deadline_ms:
        return None
    return _expired(state, counter, head, "not_before")


def _expired(state: State, counter: Counter, head: Waiting, reason: str) -> OperationExpired:
    row = state.operation(head.operation)
    assert row is not None
    return OperationExpired(
        tenant=counter.tenant, operation=head.operation, reason=reason, member=row.member
    )


def _grant(
    state: State, domain: Domain, lane: Lane, counter: Counter, head: Waiting, member: MemberId
) -> GrantIssued:
    row = state.operation(head.operation)
    assert row is not None
    config = domain.config
    cost = cost_of(head)
    hold_ms = counter.row.hold_ms or config.hold_initial_ms
    more = row.more
    windows_ms = [w.config.window_ms for w in domain.windows if w.config.window_ms is not None]
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
        report_send=config.report_send
        or any(ms < SEND_REPORT_FACTOR * config.send_within_ms for ms in windows_ms),
        requests=cost.requests,
        tokens=cost.tokens,
        slots=cost.slots,
        cost_ns=cost_ns(domain.dimensions(), cost, hold_ms=hold_ms),
        weight=state.config.tenant(row.tenant).weight,
        lift=lane.lift_at_pick(counter),
        config_version=domain.version,
        authority_epoch=state.cell.epoch,
        runtime_ms=more.runtime_ms,
        turns_max=more.turns_max,
        tools=more.tools,
        parent=more.parent,
        checkpoint=more.checkpoint,
        checkpoint_ref=more.checkpoint_ref,
        started_ms=standing.started_ms(state, row, member),
    )


def _life_of(state: State, member: MemberId) -> MemberEpoch:
    return MemberEpoch("") if member == NOBODY else state.pools.members[member].member_epoch


def _deferral(
    state: State, domain: Domain, counter: Counter, head: Waiting, binds: Binds | Paced
) -> Sequence[Event]:
    """Record who could not go and why, at most once a domain in `deferral_sample_ms`."""
    last = domain.row.deferred_ms
    if last >= 0 and state.now_ms < last + state.bounds.deferral_sample_ms:
        return []
    levels = domain.levels(counter.tenant)
    earliest = earliest_ms(levels, cost_of(head), now_ms=state.window_now_ms)
    not_before = None if earliest is None else Millis(earliest + state.cell.stepped_ms)
    return [
        OperationDeferred(
            tenant=counter.tenant,
            operation=head.operation,
            domain=domain.name,
            level=binds.level,
            dimension=binds.dimension,
            not_before_ms=not_before,
        )
    ]


# -- folds --------------------------------------------------------------------------------------


def granted(state: State, event: GrantIssued) -> None:
    """The operation leaves its queue and takes its whole cost and a place."""
    operation = event.operation
    row = state.operation(operation)
    assert row is not None
    domain = state.config.domains[event.domain]
    lane, counter = state.counted(row)
    lane.charge(counter, event.cost_ns, partial(_holds_itself_back, state, domain))
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
        tokens=event.tokens,
        slots=event.slots,
        cost_ns=event.cost_ns,
        weight=event.weight,
        lift=event.lift,
        config_version=event.config_version,
        send_within_ms=event.send_within_ms,
        charges=hold(windows, cost_of(row), now_ms=state.window_now_ms),
    )
    state.put_attempt(operation, attempt)
    state.timers.set(event.claim_by_ms, Kind.CLAIM_BY, operation)
    state.occupy(operation, attempt)


def _holds_itself_back(state: State, domain: Domain, counter: Counter) -> bool:
    """Whether no head of the tenant has a place and room in the tenant's own caps."""
    own = domain.tenant_windows.get(counter.tenant, [])
    now_ms = state.window_now_ms
    heads = (head for head, _, _ in _open(state, domain, counter))
    return not any(isinstance(check(own, cost_of(head), now_ms=now_ms), Fits) for head in heads)


def deferred(state: State, event: OperationDeferred) -> None:
    """Remember when, for the sampling rule."""
    domain = state.config.domains[event.domain]
    domain.row.deferred_ms = state.now_ms
    state.put_domain(domain)


def expired(state: State, event: OperationExpired) -> None:
    """Over, without a start."""
    row = state.operation(event.operation)
    assert row is not None
    waiting.leave_queue(state, event.operation, row)
    state.finish(event.operation, row, Phase.EXPIRED)
