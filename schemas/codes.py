"""The one table of codes: what every refusal is called, what it means, and how HTTP says it."""

from dataclasses import dataclass
from enum import StrEnum


class Code(StrEnum):
    """Spelled as users see them; what each means is in `CODES`."""

    MALFORMED = "malformed"
    UNKNOWN_SCHEMA = "unknown-schema"
    WRONG_TOPIC = "wrong-topic"
    WRONG_PARTITION = "wrong-partition"
    INPUT_TOO_LARGE = "input-too-large"
    EMPTY_KEY = "empty-key"
    KEY_MISMATCH = "key-mismatch"
    UNKNOWN_OUTCOME_CLASS = "unknown-outcome-class"
    IDEMPOTENCY_KEY_MISSING = "idempotency-key-missing"
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not-found"
    IDEMPOTENCY_IN_PROGRESS = "idempotency-in-progress"
    IDEMPOTENCY_MISMATCH = "idempotency-mismatch"
    START_REFUSED = "start-refused"
    POOL_FULL = "pool-full"
    SETTLEMENT_CONFLICT = "settlement-conflict"
    EPOCH_SUPERSEDED = "epoch-superseded"
    VERSION_SUPERSEDED = "version-superseded"
    NEVER_FITS = "never-fits"
    PAYLOAD_TOO_LARGE = "payload-too-large"
    INVALID_FIELD = "invalid-field"
    DEADLINE_MISSING = "deadline-missing"
    DEADLINE_PASSED = "deadline-passed"
    OUTPUT_CEILING_MISSING = "output-ceiling-missing"
    REFERENCE_TOO_LONG = "reference-too-long"
    UNKNOWN_POOL = "unknown-pool"
    UNKNOWN_DOMAIN = "unknown-domain"
    LANE_NOT_ENTITLED = "lane-not-entitled"
    TENANT_QUEUE_FULL = "tenant-queue-full"
    DOMAIN_QUEUE_FULL = "domain-queue-full"
    CELL_QUEUE_FULL = "cell-queue-full"
    BUDGET_EXHAUSTED = "budget-exhausted"
    TOO_MANY_CALLS = "too-many-calls"
    CLAIM_HELD = "claim-held"
    NOT_STARTED = "not-started"
    LEASE_NOT_HELD = "lease-not-held"
    CHECKPOINT_GAP = "checkpoint-gap"
    NOT_UNKNOWN = "not-unknown"
    NOT_ITS_MEMBER = "not-its-member"
    NOT_DEAD = "not-dead"
    CONTRADICTS_RECONCILIATION = "contradicts-reconciliation"
    CONTEXT_TOO_LARGE = "context-too-large"
    USAGE_OUT_OF_RANGE = "usage-out-of-range"
    USAGE_UNIT_UNKNOWN = "usage-unit-unknown"
    RUNTIME_TOO_LONG = "runtime-too-long"
    TURNS_TOO_MANY = "turns-too-many"
    TURNS_EXHAUSTED = "turns-exhausted"
    PARENT_NOT_RUNNING = "parent-not-running"
    TOO_MANY_ARTIFACTS = "too-many-artifacts"
    ATTEMPTS_EXHAUSTED = "attempts-exhausted"
    THROTTLES_EXHAUSTED = "throttles-exhausted"
    NOT_SENT_EXHAUSTED = "not-sent-exhausted"
    RETRY_BUDGET_EXHAUSTED = "retry-budget-exhausted"
    NO_OWNER = "no-owner"
    RESTORING = "restoring"
    BEHIND = "behind"
    DELIVERIES_GONE = "deliveries-gone"
    NOT_WRITTEN = "not-written"
    INTERNAL = "internal"


@dataclass(frozen=True, slots=True)
class CodeInfo:
    """What a code is outside: HTTP status, a title for people, and whether to come again."""

    status: int
    title: str
    temporary: bool = False
    """True: not bound to the idempotency key; the same key may be sent again (R188)."""


CODES: dict[Code, CodeInfo] = {
    Code.MALFORMED: CodeInfo(400, "The request could not be read"),
    Code.UNKNOWN_SCHEMA: CodeInfo(400, "No published schema has this fingerprint"),
    Code.WRONG_TOPIC: CodeInfo(400, "This kind of record does not belong on this topic"),
    Code.WRONG_PARTITION: CodeInfo(400, "The key belongs on another partition (murmur2)"),
    Code.INPUT_TOO_LARGE: CodeInfo(413, "An input record is larger than the cell reads"),
    Code.EMPTY_KEY: CodeInfo(400, "The record has no key"),
    Code.KEY_MISMATCH: CodeInfo(400, "The key and the body name different owners"),
    Code.UNKNOWN_OUTCOME_CLASS: CodeInfo(400, "No such outcome"),
    Code.IDEMPOTENCY_KEY_MISSING: CodeInfo(400, "An idempotency key is needed"),
    Code.UNAUTHENTICATED: CodeInfo(401, "No valid credential"),
    Code.FORBIDDEN: CodeInfo(403, "The credential does not allow this"),
    Code.NOT_FOUND: CodeInfo(404, "Not found"),
    Code.IDEMPOTENCY_IN_PROGRESS: CodeInfo(
        409, "The first request with this key is still being decided", temporary=True
    ),
    Code.START_REFUSED: CodeInfo(409, "The grant is no longer live; do not call the provider"),
    Code.POOL_FULL: CodeInfo(409, "The pool has no free member slot", temporary=True),
    Code.SETTLEMENT_CONFLICT: CodeInfo(409, "Already settled otherwise"),
    Code.EPOCH_SUPERSEDED: CodeInfo(412, "A newer epoch has taken over"),
    Code.VERSION_SUPERSEDED: CodeInfo(412, "The configuration was changed since it was read"),
    Code.NEVER_FITS: CodeInfo(413, "The cost exceeds a limit and can never fit"),
    Code.PAYLOAD_TOO_LARGE: CodeInfo(413, "The declared payload is larger than the cell accepts"),
    Code.IDEMPOTENCY_MISMATCH: CodeInfo(422, "This key was used for another payload"),
    Code.INVALID_FIELD: CodeInfo(422, "A field has a value outside its range"),
    Code.DEADLINE_MISSING: CodeInfo(422, "A deadline for the start is needed"),
    Code.DEADLINE_PASSED: CodeInfo(422, "The deadline has passed"),
    Code.OUTPUT_CEILING_MISSING: CodeInfo(422, "Each call needs its own output ceiling"),
    Code.REFERENCE_TOO_LONG: CodeInfo(422, "A reference is longer than the cell accepts"),
    Code.UNKNOWN_POOL: CodeInfo(422, "No such pool"),
    Code.UNKNOWN_DOMAIN: CodeInfo(422, "No such budget domain"),
    Code.LANE_NOT_ENTITLED: CodeInfo(403, "The tenant is not entitled to this lane"),
    Code.TENANT_QUEUE_FULL: CodeInfo(429, "The tenant's queue is full", temporary=True),
    Code.DOMAIN_QUEUE_FULL: CodeInfo(429, "The domain's queue is full", temporary=True),
    Code.CELL_QUEUE_FULL: CodeInfo(429, "The cell's queue is full", temporary=True),
    Code.BUDGET_EXHAUSTED: CodeInfo(429, "The budget is exhausted", temporary=True),
    Code.TOO_MANY_CALLS: CodeInfo(429, "Too many calls", temporary=True),
    Code.CLAIM_HELD: CodeInfo(409, "Another member holds the lease"),
    Code.NOT_STARTED: CodeInfo(409, "A result needs an accepted start"),
    Code.LEASE_NOT_HELD: CodeInfo(
        412, "This member does not hold that lease; stop causing effects"
    ),
    Code.CHECKPOINT_GAP: CodeInfo(409, "A checkpoint follows the last recorded one without a gap"),
    Code.NOT_UNKNOWN: CodeInfo(409, "The outcome is not unknown"),
    Code.NOT_ITS_MEMBER: CodeInfo(403, "Another member had this attempt"),
    Code.NOT_DEAD: CodeInfo(409, "Only a dead or closed operation is tried again by hand"),
    Code.CONTRADICTS_RECONCILIATION: CodeInfo(409, "It was reconciled otherwise before"),
    Code.CONTEXT_TOO_LARGE: CodeInfo(413, "The context is larger than the tenant's limit"),
    Code.USAGE_OUT_OF_RANGE: CodeInfo(422, "Token counts are negative or absurd"),
    Code.USAGE_UNIT_UNKNOWN: CodeInfo(422, "Usage is told in tokens"),
    Code.RUNTIME_TOO_LONG: CodeInfo(422, "The runtime is longer than the tenant's limit"),
    Code.TURNS_TOO_MANY: CodeInfo(422, "The run asks for more turns than the tenant's limit"),
    Code.TURNS_EXHAUSTED: CodeInfo(422, "The run has used up its turns"),
    Code.PARENT_NOT_RUNNING: CodeInfo(
        422, "A turn needs a started run of the same tenant as its parent"
    ),
    Code.TOO_MANY_ARTIFACTS: CodeInfo(422, "More artifacts than the tenant's limit"),
    Code.ATTEMPTS_EXHAUSTED: CodeInfo(409, "The operation has used up its attempts"),
    Code.THROTTLES_EXHAUSTED: CodeInfo(409, "The provider throttled the operation too often"),
    Code.NOT_SENT_EXHAUSTED: CodeInfo(409, "Accepted starts led to no call too often"),
    Code.RETRY_BUDGET_EXHAUSTED: CodeInfo(409, "The tenant has used up its retries in this domain"),
    Code.NO_OWNER: CodeInfo(503, "No scheduler owns the cell at present", temporary=True),
    Code.RESTORING: CodeInfo(503, "The read model is still being restored", temporary=True),
    Code.BEHIND: CodeInfo(503, "The read model has not reached that position", temporary=True),
    Code.DELIVERIES_GONE: CodeInfo(
        410, "Deliveries after that position are not kept any more; join as a new life"
    ),
    Code.NOT_WRITTEN: CodeInfo(503, "The broker did not confirm the write", temporary=True),
    Code.INTERNAL: CodeInfo(500, "A mistake of ours"),
}
