"""How an operation leaves its newest attempt while nobody knows how that ended."""

from schemas.ids import OperationId

from .operations import AttemptRow
from .state import State


def resolve(state: State, operation: OperationId, attempt: AttemptRow) -> None:
    """The outcome of the newest attempt is unknown no longer; its hold closes after this."""
    state.holds.unwatch(operation, attempt)
    if not attempt.is_open:
        state.drop_attempt(operation)


def set_aside(state: State, operation: OperationId) -> None:
    """The operation goes on without its unknown attempt, which keeps what it holds."""
    attempt = state.drop_attempt(operation)
    if attempt.is_open:
        state.holds.keep(operation, attempt)
    else:
        state.holds.unwatch(operation, attempt)
