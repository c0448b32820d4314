"""What a person asks for: signed with author and reason, or not heard; refused with a code."""

from schemas.codes import Code
from schemas.events import ManualActionRefused
from schemas.inputs import CellConfig, ReconcileRequested, RetryRequested

from .outcomes import Unreadable
from .shape import valid_name

Asked = ReconcileRequested | RetryRequested


def unsigned(bounds: CellConfig, asked: Asked) -> Unreadable | None:
    """Why nobody can be held to it, or None."""
    longest = bounds.reference_bytes_max
    if valid_name(asked.author) and 0 < len(asked.reason.encode()) <= longest:
        return None
    return Unreadable(Code.INVALID_FIELD, "Expected an author and a short reason")


def refused(asked: Asked, code: Code, detail: str) -> ManualActionRefused:
    """It does not apply; nothing changes."""
    return ManualActionRefused(
        tenant=asked.tenant,
        operation=asked.operation,
        action="retry" if isinstance(asked, RetryRequested) else "reconcile",
        code=code,
        detail=detail,
        author=asked.author,
    )
