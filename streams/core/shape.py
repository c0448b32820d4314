"""What a submission asks for, guard by guard: does it exist, and does it lie in range?"""

from schemas.codes import Code
from schemas.ids import SELF_POOL
from schemas.inputs import CellConfig, OperationSubmitted
from schemas.lanes import LANES
from schemas.phase import Phase
from schemas.units import Tokens

from .costs import RUN_COST, Cost, call_cost
from .limits import NAME_BYTES_MAX, TOKENS_MAX, TOOLS_MAX
from .outcomes import Refusal
from .state import State

EFFECTS = frozenset(("read_only", "keyed", "unsafe"))


def valid_name(name: str) -> bool:
    """Whether a name may be a key: printable, not empty, not longer than the limit."""
    return name.isprintable() and 0 < len(name.encode()) <= NAME_BYTES_MAX


def names(asked: OperationSubmitted) -> Refusal | None:
    """Whether the names can be keys; a refusal is not bound, since the key itself may be wrong."""
    if not asked.idempotency_key:
        return Refusal(Code.IDEMPOTENCY_KEY_MISSING, "Expected an idempotency key, but it is empty")
    for field in ("tenant", "user", "idempotency_key", "pool", "domain"):
        if not valid_name(getattr(asked, field)):
            return Refusal(Code.INVALID_FIELD, _printable(field))
    if asked.member is not None and not valid_name(asked.member):
        return Refusal(Code.INVALID_FIELD, _printable("member"))
    return None


def _printable(field: str) -> str:
    return f"Expected {field} to have 1 to {NAME_BYTES_MAX} printable bytes, but it has not"


def content(state: State, asked: OperationSubmitted) -> Refusal | None:
    """Whether what it asks for exists and lies in range, in this order."""
    if asked.domain not in state.config.domains:
        return _bound(Code.UNKNOWN_DOMAIN, f"Expected a budget domain, but got {asked.domain!r}")
    return (
        _workers(state, asked)
        or _class_of_work(state, asked)
        or _tokens(asked)
        or _payload(state.bounds, asked)
        or _run(state, asked)
        or _turn(state, asked)
    )


def _workers(state: State, asked: OperationSubmitted) -> Refusal | None:
    if asked.pool == SELF_POOL:
        member = state.pools.members.get(asked.member) if asked.member else None
        if member is None or member.pool != SELF_POOL or member.tenant != asked.tenant:
            # Not bound: the process may join and send the same key again.
            return Refusal(
                Code.UNKNOWN_POOL, "Expected the tenant's own member of pool self, but it is none"
            )
    elif asked.pool not in state.config.pools:
        return _bound(Code.UNKNOWN_POOL, f"Expected a pool, but got {asked.pool!r}")
    elif not state.config.runs(asked.pool, asked.domain):
        return _bound(
            Code.UNKNOWN_POOL, f"Expected a pool that runs {asked.domain}, but got {asked.pool!r}"
        )
    elif asked.member is not None:
        return _bound(Code.INVALID_FIELD, "Expected a member only for pool self, but got one")
    return None


def _class_of_work(state: State, asked: OperationSubmitted) -> Refusal | None:
    if asked.lane not in LANES:
        return _bound(
            Code.INVALID_FIELD, f"Expected lane {', '.join(LANES)}, but got {asked.lane!r:.40}"
        )
    entitled = state.config.tenant(asked.tenant).lanes
    if asked.lane not in entitled:
        # Not bound: the tenant may be entitled later and send the same key again.
        told = f"Expected a lane of the tenant ({', '.join(entitled)}), but got {asked.lane}"
        return Refusal(Code.LANE_NOT_ENTITLED, told)
    if asked.effect not in EFFECTS:
        return _bound(
            Code.INVALID_FIELD, f"Expected effect {sorted(EFFECTS)}, but got {asked.effect!r:.40}"
        )
    if asked.connection is not None or asked.tier is not None:
        return _bound(Code.INVALID_FIELD, "Expected no connection and no tier, but got one")
    return None


def _tokens(asked: OperationSubmitted) -> Refusal | None:
    if asked.output_tokens_max is None and asked.turns_max is None:
        return _bound(Code.OUTPUT_CEILING_MISSING, "Expected output_tokens_max, but it is null")
    for field in ("prompt_tokens", "output_tokens_max"):
        if not 0 <= (getattr(asked, field) or 0) <= TOKENS_MAX:
            return _bound(
                Code.INVALID_FIELD,
                f"Expected {field} from 0 to {TOKENS_MAX}, but got {getattr(asked, field)}",
            )
    return None


def _payload(bounds: CellConfig, asked: OperationSubmitted) -> Refusal | None:
    if asked.payload_bytes < 0:
        return _bound(
            Code.INVALID_FIELD,
            f"Expected payload_bytes of 0 or more, but got {asked.payload_bytes}",
        )
    if asked.payload_bytes > bounds.payload_bytes_max:
        return _bound(
            Code.PAYLOAD_TOO_LARGE,
            f"Expected at most {bounds.payload_bytes_max} bytes, but got {asked.payload_bytes}",
        )
    for text in (asked.payload_ref, asked.content_sha256):
        if text is not None and len(text.encode()) > bounds.reference_bytes_max:
            return _bound(
                Code.REFERENCE_TOO_LONG,
                f"Expected a reference of at most {bounds.reference_bytes_max} bytes",
            )
    return None


def _run(state: State, asked: OperationSubmitted) -> Refusal | None:
    """What it may take in time, turns and tools."""
    limits = state.config.tenant(asked.tenant)
    if asked.runtime_ms is not None and not 0 < asked.runtime_ms <= limits.runtime_ms_max:
        most = limits.runtime_ms_max
        detail = f"Expected runtime_ms from 1 to {most}, but got {asked.runtime_ms}"
        code = Code.INVALID_FIELD if asked.runtime_ms <= 0 else Code.RUNTIME_TOO_LONG
        return _bound(code, detail)
    if asked.turns_max is None:
        return _bound(Code.INVALID_FIELD, "Expected tools only of a run") if asked.tools else None
    if not 0 < asked.turns_max <= limits.turns_max:
        detail = f"Expected turns_max from 1 to {limits.turns_max}, but got {asked.turns_max}"
        return _bound(Code.INVALID_FIELD if asked.turns_max <= 0 else Code.TURNS_TOO_MANY, detail)
    if len(asked.tools) > TOOLS_MAX or not all(valid_name(tool) for tool in asked.tools):
        return _bound(Code.INVALID_FIELD, f"Expected at most {TOOLS_MAX} names of tools")
    if asked.prompt_tokens or asked.output_tokens_max:
        return _bound(Code.INVALID_FIELD, "Expected no tokens of a run: its turns reserve them")
    return None


def _turn(state: State, asked: OperationSubmitted) -> Refusal | None:
    """A turn needs a started run of its tenant that has one left; not bound, the run may resume."""
    if asked.parent is None:
        return None
    if asked.turns_max is not None:
        return _bound(Code.INVALID_FIELD, "Expected a turn that is no run itself")
    parent = state.operation(asked.parent)
    if (
        parent is None
        or parent.tenant != asked.tenant
        or parent.phase is not Phase.STARTED
        or parent.more.turns_max is None
    ):
        return Refusal(Code.PARENT_NOT_RUNNING, "Expected a started run of the tenant as parent")
    if parent.more.turns >= parent.more.turns_max:
        detail = f"Expected at most {parent.more.turns_max} turns, but this is one more"
        return Refusal(Code.TURNS_EXHAUSTED, detail)
    return None


def cost(state: State, asked: OperationSubmitted) -> Cost:
    """What it would take while it runs."""
    if asked.turns_max is not None:
        return RUN_COST
    prices = state.config.domains[asked.domain].config.prices
    return call_cost(asked.prompt_tokens, asked.output_tokens_max or Tokens(0), prices)


def reference(bounds: CellConfig, text: str | None) -> str | None:
    """The text if a row may hold it; one that is too long is left out, and the rest counts."""
    longest = bounds.reference_bytes_max
    return None if text is None or len(text.encode()) > longest else text


def tokens_in_range(*counts: Tokens | None) -> bool:
    """Whether every count that is given can be one."""
    return all(count is None or 0 <= count <= TOKENS_MAX for count in counts)


def _bound(code: Code, detail: str) -> Refusal:
    return Refusal(code, detail, binds_key=True)


def deadline(state: State, asked: OperationSubmitted) -> Refusal | None:
    """Never bound to the key: the deadline is no part of the payload digest."""
    within, absolute = asked.start_within_ms, asked.deadline_ms
    if within is None and absolute is None:
        return Refusal(
            Code.DEADLINE_MISSING, "Expected start_within_ms or deadline_ms, but both are null"
        )
    furthest = state.bounds.start_within_ms_max
    if within is not None and not 0 < within <= furthest:
        return Refusal(
            Code.INVALID_FIELD, f"Expected start_within_ms from 1 to {furthest}, but got {within}"
        )
    if absolute is not None and absolute <= state.now_ms:
        return Refusal(
            Code.DEADLINE_PASSED, f"Expected a deadline after {state.now_ms}, but got {absolute}"
        )
    if absolute is not None and absolute > state.now_ms + furthest:
        return Refusal(Code.INVALID_FIELD, f"Expected a deadline within {furthest} ms from now")
    return None
