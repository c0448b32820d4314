"""What a grant takes of a dimension, and what bulk leaves free of it."""

from schemas import events as e
from schemas.inputs import DimensionConfig


def amount_of(grant: e.GrantIssued, dimension: DimensionConfig) -> int:
    """What a grant takes of a dimension."""
    match dimension.unit:
        case "requests":
            return grant.requests
        case "tokens":
            return grant.tokens
        case "slots":
            return grant.slots
        case _:
            return 1 - grant.slots  # a run is what holds no slot


def reserve(dimension: DimensionConfig, percent: int) -> int:
    """What bulk leaves free of a limit; of slots all but one at most (R109)."""
    part = (dimension.limit * percent + 99) // 100
    return min(part, max(0, dimension.limit - 1)) if dimension.kind == "concurrency" else part
