"""Every window of a provider's record, wherever it begins, judged exactly from arrivals alone."""

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from schemas.inputs import DimensionConfig

NANOS_PER_MILLI = 1_000_000


class Call(NamedTuple):
    """One that arrived, by the provider's clock."""

    at_ns: int
    tokens: int

    def amount(self, dimension: DimensionConfig) -> int:
        return 1 if dimension.unit == "requests" else self.tokens


def most(calls: Iterable[Call], dimension: DimensionConfig, *, ahead_ns: int = 0) -> int:
    """What the fullest window held; `ahead_ns`: the wall clock's of the arrivals' clock.

    A fixed window of which nobody knows the reset may begin anywhere, as a sliding one does.
    """
    assert dimension.window_ms is not None
    window_ns = dimension.window_ms * NANOS_PER_MILLI
    if dimension.reset_ms is not None:
        held: Counter[int] = Counter()
        for call in calls:
            held[_begun_ns(dimension, call.at_ns + ahead_ns)] += call.amount(dimension)
        return max(held.values())
    inside: deque[Call] = deque()
    found = 0
    for call in sorted(calls):
        inside.append(call)
        while inside[0].at_ns <= call.at_ns - window_ns:
            inside.popleft()
        found = max(found, sum(one.amount(dimension) for one in inside))
    return found


def _begun_ns(dimension: DimensionConfig, at_ns: int) -> int:
    """When the fixed window began that holds an instant; too short a rest is part of the last."""
    assert dimension.reset_ms is not None
    assert dimension.window_ms is not None
    window_ns = dimension.window_ms * NANOS_PER_MILLI
    known = [one * NANOS_PER_MILLI for one in (dimension.reset_ms, *dimension.later_resets_ms)]
    last = max((one for one in known if one <= at_ns), default=known[0])
    begun_ns = last + (at_ns - last) // window_ns * window_ns
    is_rest = any(0 < 2 * (one - begun_ns) < window_ns for one in known)
    return begun_ns - window_ns if is_rest else begun_ns


def nearest_ms(calls: Sequence[Call], dimension: DimensionConfig) -> float | None:
    """How much longer the window could have been without ever holding too much.

    Negative: it held too much. None: all of the calls would have fitted into one.
    """
    assert dimension.window_ms is not None
    ordered, last, held, nearest_ns = sorted(calls), 0, 0, None
    for call in ordered:
        while held <= dimension.limit:
            if last == len(ordered):
                return None if nearest_ns is None else _over_ms(nearest_ns, dimension)
            held += ordered[last].amount(dimension)
            last += 1
        span_ns = ordered[last - 1].at_ns - call.at_ns
        nearest_ns = span_ns if nearest_ns is None else min(nearest_ns, span_ns)
        held -= call.amount(dimension)
    return None if nearest_ns is None else _over_ms(nearest_ns, dimension)


def _over_ms(span_ns: int, dimension: DimensionConfig) -> float:
    assert dimension.window_ms is not None
    return span_ns / NANOS_PER_MILLI - dimension.window_ms
