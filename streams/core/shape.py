"""What a submission asks for, guard by guard: does it exist, and does it lie in range?"""

from schemas.codes import Code
from schemas.ids import SELF_POOL
from schemas.inputs import CellConfig, OperationSubmitted

from .limits import NAME_BYTES_MAX, TOKENS_MAX
from .outcomes import Refusal
from .state import State

EFFECTS = frozenset(("read_only", "keyed", "unsafe"))
LANES = frozenset(("interactive",))
"""Lanes that are admitted; decision and bulk come with their reserve and floor."""


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
        or _class_of_work(asked)
        or _tokens(asked)
        or _payload(state.bounds, asked)
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


def _class_of_work(asked: OperationSubmitted) -> Refusal | None:
    if asked.lane not in LANES:
        return _bound(Code.INVALID_FIELD, f"Expected lane interactive, but got {asked.lane!r:.40}")
    if asked.effect not in EFFECTS:
        return _bound(
            Code.INVALID_FIELD, f"Expected effect {sorted(EFFECTS)}, but got {asked.effect!r:.40}"
        )
    if asked.connection is not None or asked.tier is not None:
        return _bound(Code.INVALID_FIELD, "Expected no connection and no tier, but got one")
    return None


def _tokens(asked: OperationSubmitted) -> Refusal | None:
    if asked.output_tokens_max is None:
        return _bound(Code.OUTPUT_CEILING_MISSING, "Expected output_tokens_max, but it is null")
    for field in ("prompt_tokens", "output_tokens_max"):
        if not 0 <= getattr(asked, field) <= TOKENS_MAX:
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
