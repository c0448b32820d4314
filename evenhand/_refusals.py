"""What refuses a request: one class for each code that a submission or the door can meet."""

from evenhand._error import EvenhandError
from evenhand._words import codes

Code = codes.Code


class Malformed(EvenhandError):
    """The request could not be read."""

    code = Code.MALFORMED


class UnknownSchema(EvenhandError):
    """No published schema has this fingerprint."""

    code = Code.UNKNOWN_SCHEMA


class WrongTopic(EvenhandError):
    """This kind of record does not belong on this topic."""

    code = Code.WRONG_TOPIC


class WrongPartition(EvenhandError):
    """The key belongs on another partition."""

    code = Code.WRONG_PARTITION


class InputTooLarge(EvenhandError):
    """An input record is larger than the cell reads."""

    code = Code.INPUT_TOO_LARGE


class EmptyKey(EvenhandError):
    """The record has no key."""

    code = Code.EMPTY_KEY


class KeyMismatch(EvenhandError):
    """The key and the body name different owners."""

    code = Code.KEY_MISMATCH


class UnknownOutcomeClass(EvenhandError):
    """No such outcome."""

    code = Code.UNKNOWN_OUTCOME_CLASS


class IdempotencyKeyMissing(EvenhandError):
    """An idempotency key is needed."""

    code = Code.IDEMPOTENCY_KEY_MISSING


class Unauthenticated(EvenhandError):
    """No valid credential."""

    code = Code.UNAUTHENTICATED


class Forbidden(EvenhandError):
    """The credential does not allow this."""

    code = Code.FORBIDDEN


class NotFound(EvenhandError):
    """Not found."""

    code = Code.NOT_FOUND


class IdempotencyInProgress(EvenhandError):
    """The first request with this key is still being decided."""

    code = Code.IDEMPOTENCY_IN_PROGRESS


class IdempotencyMismatch(EvenhandError):
    """This key was used for another payload; nothing changed."""

    code = Code.IDEMPOTENCY_MISMATCH


class StartRefused(EvenhandError):
    """The grant is no longer live; do not call the provider."""

    code = Code.START_REFUSED


class PoolFull(EvenhandError):
    """The pool has no free member slot."""

    code = Code.POOL_FULL


class SettlementConflict(EvenhandError):
    """Already settled otherwise."""

    code = Code.SETTLEMENT_CONFLICT


class EpochSuperseded(EvenhandError):
    """A newer epoch has taken over."""

    code = Code.EPOCH_SUPERSEDED


class VersionSuperseded(EvenhandError):
    """The configuration was changed since it was read."""

    code = Code.VERSION_SUPERSEDED


class NeverFits(EvenhandError):
    """The cost exceeds a limit and can never fit."""

    code = Code.NEVER_FITS


class PayloadTooLarge(EvenhandError):
    """The declared payload is larger than the cell accepts."""

    code = Code.PAYLOAD_TOO_LARGE


class InvalidField(EvenhandError):
    """A field has a value outside its range."""

    code = Code.INVALID_FIELD


class DeadlineMissing(EvenhandError):
    """A deadline for the start is needed."""

    code = Code.DEADLINE_MISSING


class DeadlinePassed(EvenhandError):
    """The deadline has passed."""

    code = Code.DEADLINE_PASSED


class OutputCeilingMissing(EvenhandError):
    """Each call needs its own output ceiling."""

    code = Code.OUTPUT_CEILING_MISSING


class ReferenceTooLong(EvenhandError):
    """A reference is longer than the cell accepts."""

    code = Code.REFERENCE_TOO_LONG


class UnknownPool(EvenhandError):
    """No such pool."""

    code = Code.UNKNOWN_POOL


class UnknownDomain(EvenhandError):
    """No such budget domain."""

    code = Code.UNKNOWN_DOMAIN


class LaneNotEntitled(EvenhandError):
    """The tenant is not entitled to this lane."""

    code = Code.LANE_NOT_ENTITLED


class TenantQueueFull(EvenhandError):
    """The tenant's queue is full."""

    code = Code.TENANT_QUEUE_FULL


class DomainQueueFull(EvenhandError):
    """The domain's queue is full."""

    code = Code.DOMAIN_QUEUE_FULL


class CellQueueFull(EvenhandError):
    """The cell's queue is full."""

    code = Code.CELL_QUEUE_FULL


class BudgetExhausted(EvenhandError):
    """The budget is exhausted."""

    code = Code.BUDGET_EXHAUSTED


class TooManyCalls(EvenhandError):
    """Too many calls."""

    code = Code.TOO_MANY_CALLS


class NoOwner(EvenhandError):
    """No scheduler owns the cell at present."""

    code = Code.NO_OWNER


class Restoring(EvenhandError):
    """The read model is still being restored."""

    code = Code.RESTORING


class Behind(EvenhandError):
    """The read model has not reached that position."""

    code = Code.BEHIND


class NotWritten(EvenhandError):
    """The broker did not confirm the write; it may or may not have happened."""

    code = Code.NOT_WRITTEN


class Internal(EvenhandError):
    """A mistake on the server's side."""

    code = Code.INTERNAL
