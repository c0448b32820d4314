"""What refuses work under way: one class for each code of claims, attempts, runs and retries."""

from evenhand._error import EvenhandError
from evenhand._words import codes

Code = codes.Code


class ClaimHeld(EvenhandError):
    """Another member holds the lease."""

    code = Code.CLAIM_HELD


class NotStarted(EvenhandError):
    """A result needs an accepted start."""

    code = Code.NOT_STARTED


class LeaseNotHeld(EvenhandError):
    """This member does not hold that lease; stop causing effects."""

    code = Code.LEASE_NOT_HELD


class CheckpointGap(EvenhandError):
    """A checkpoint follows the last recorded one without a gap."""

    code = Code.CHECKPOINT_GAP


class NotUnknown(EvenhandError):
    """The outcome is not unknown."""

    code = Code.NOT_UNKNOWN


class NotDead(EvenhandError):
    """Only a dead or closed operation is tried again by hand."""

    code = Code.NOT_DEAD


class NotItsMember(EvenhandError):
    """Another member had this attempt."""

    code = Code.NOT_ITS_MEMBER


class ContradictsReconciliation(EvenhandError):
    """It was reconciled otherwise before."""

    code = Code.CONTRADICTS_RECONCILIATION


class ContextTooLarge(EvenhandError):
    """The context is larger than the tenant's limit."""

    code = Code.CONTEXT_TOO_LARGE


class UsageOutOfRange(EvenhandError):
    """Token counts are negative or absurd."""

    code = Code.USAGE_OUT_OF_RANGE


class UsageUnitUnknown(EvenhandError):
    """Usage is told in tokens."""

    code = Code.USAGE_UNIT_UNKNOWN


class RuntimeTooLong(EvenhandError):
    """The runtime is longer than the tenant's limit."""

    code = Code.RUNTIME_TOO_LONG


class TurnsTooMany(EvenhandError):
    """The run asks for more turns than the tenant's limit."""

    code = Code.TURNS_TOO_MANY


class TurnsExhausted(EvenhandError):
    """The run has used up its turns."""

    code = Code.TURNS_EXHAUSTED


class ParentNotRunning(EvenhandError):
    """A turn needs a started run of the same tenant as its parent."""

    code = Code.PARENT_NOT_RUNNING


class TooManyArtifacts(EvenhandError):
    """More artifacts than the tenant's limit."""

    code = Code.TOO_MANY_ARTIFACTS


class AttemptsExhausted(EvenhandError):
    """The operation has used up its attempts."""

    code = Code.ATTEMPTS_EXHAUSTED


class ThrottlesExhausted(EvenhandError):
    """The provider throttled the operation too often."""

    code = Code.THROTTLES_EXHAUSTED


class NotSentExhausted(EvenhandError):
    """Accepted starts led to no call too often."""

    code = Code.NOT_SENT_EXHAUSTED


class RetryBudgetExhausted(EvenhandError):
    """The tenant has used up its retries in this domain."""

    code = Code.RETRY_BUDGET_EXHAUSTED


class DeliveriesGone(EvenhandError):
    """Deliveries after that position are not kept any more; join as a new life."""

    code = Code.DELIVERIES_GONE
