"""How a refusal looks outside: RFC 9457 with the code and what helps to do next."""

from typing import Literal

from .body import Instant, Reply
from .codes import Code


class BudgetProblem(Reply):
    """The budget that refused."""

    domain: str
    level: str | None = None
    dimension: str | None = None


class FieldProblem(Reply):
    """One field that was not taken."""

    field: str
    reason: str


class Problem(Reply):
    """RFC 9457, `application/problem+json`."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: Code
    keep_key: bool | None = None
    """True: send the same idempotency key again. False: this answer is bound to the key."""
    operation: str | None = None
    tenant: str | None = None
    budget: BudgetProblem | None = None
    retry_at: Instant | None = None
    confidence: Literal["locally_measured", "unknown"] | None = None
    """How `retry_at` is known; `unknown` beside null means: probe again."""
    errors: list[FieldProblem] | None = None
