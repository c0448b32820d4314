"""The root of everything that can go wrong for a user."""

from datetime import datetime
from typing import ClassVar

from evenhand._words import codes, problems


class EvenhandError(Exception):
    """Evenhand did not do what was asked."""

    code: ClassVar[codes.Code | None] = None

    def __init__(
        self,
        detail: str | None = None,
        *,
        operation: str | None = None,
        retry_at: datetime | None = None,
        retry_after_s: float | None = None,
        budget: problems.BudgetProblem | None = None,
    ) -> None:
        """Without a detail the message is the class's own sentence.

        Args:
            detail: expected what, but what.
            operation: the id concerned, in hex.
            retry_at: when a repeat may help; None means unknown or never.
            retry_after_s: how long to wait before it, as the server counts.
            budget: the budget that refused.
        """
        super().__init__(detail or (type(self).__doc__ or "").strip())
        self.operation = operation
        self.retry_at = retry_at
        self.retry_after_s = retry_after_s
        self.budget = budget

    @property
    def keep_key(self) -> bool:
        """Whether the same idempotency key may be sent again: the refusal is not bound to it."""
        return self.code is None or codes.CODES[self.code].temporary
