"""Fixed windows of known resets, by a second writing: every window has a number.

A charge counts in each window that its arrival interval can meet, and an unstarted one in the
window of now. Between two known resets lie as many windows as their distance holds, rounded; the
last of them is what is left, longer or shorter than the others by up to a half.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from itertools import accumulate, pairwise

from schemas.inputs import DimensionConfig


@dataclass(slots=True)
class _Span:
    amount: int
    first: int | None = None
    """Number of the first window that it can fall into; None while unstarted."""
    last: int | None = None
    """Of the last; None while it may still fall into any later one."""


class Fixed:
    """Windows one after another from known resets, give or take their uncertainty."""

    def __init__(self, dimension: DimensionConfig) -> None:
        assert dimension.window_ms is not None
        assert dimension.reset_ms is not None
        self._window_ms = dimension.window_ms
        self._resets_ms = (dimension.reset_ms, *dimension.later_resets_ms)
        counts = [
            (2 * (after - before) + self._window_ms) // (2 * self._window_ms)
            for before, after in pairwise(self._resets_ms)
        ]
        self._begins = [0, *accumulate(counts)]
        """The number of the window that begins at each known reset."""
        self._edge_ms = dimension.reset_uncertainty_ms
        self._at_completion = dimension.instant == "completion"
        self._spans: dict[Hashable, _Span] = {}
        self._sums: Counter[int] = Counter()
        """What can fall into each window, of the spans with an end."""
        self._open = 0
        """What has no last window yet."""

    def used(self, now_ms: int) -> int:
        """The fuller of the windows that now may lie in, with all that may still arrive."""
        first, last = self._windows(now_ms, now_ms)
        for number in [number for number in self._sums if number < first]:
            del self._sums[number]
        return self._open + max(self._sums[number] for number in range(first, last + 1))

    def holds(self, key: Hashable, now_ms: int) -> bool:
        """Up to the end of the last window that it can fall into."""
        span = self._spans.get(key)
        if span is None:
            return False
        return span.last is None or self._windows(now_ms, now_ms)[0] <= span.last

    def hold(self, key: Hashable, amount: int) -> None:
        """It may fall into any window from now on."""
        self._spans[key] = _Span(amount)
        self._open += amount

    def arrive(self, key: Hashable, first_ms: int, last_ms: int, send_within_ms: int) -> None:  # noqa: ARG002
        """It falls into one of these."""
        if not self._at_completion:
            self._place(key, first_ms, last_ms)

    def settle(self, key: Hashable, amount: int, now_ms: int, send_within_ms: int) -> None:  # noqa: ARG002
        """Correct the amount where it counts; its windows are known for good."""
        span = self._spans.get(key)
        if span is None:
            return
        self._count(span, -1)
        span.amount = amount
        self._count(span, 1)
        if self._at_completion:
            self._place(key, now_ms, now_ms)
        del self._spans[key]

    def drop(self, key: Hashable) -> None:
        """It falls into none."""
        span = self._spans.pop(key, None)
        if span is not None:
            self._count(span, -1)

    def extend(self, term_ms: int) -> None:
        """The provider's reset does not depend on who owns the cell."""

    def step(self, step_ms: int) -> None:
        """Nor on entry time."""

    def _place(self, key: Hashable, first_ms: int, last_ms: int) -> None:
        span = self._spans.get(key)
        if span is not None:
            self._count(span, -1)
            span.first, span.last = self._windows(first_ms, last_ms)
            self._count(span, 1)

    def _count(self, span: _Span, sign: int) -> None:
        if span.first is None or span.last is None:
            self._open += sign * span.amount
            return
        for number in range(span.first, span.last + 1):
            self._sums[number] += sign * span.amount

    def _windows(self, first_ms: int, last_ms: int) -> tuple[int, int]:
        return self._number(first_ms - self._edge_ms), self._number(last_ms + self._edge_ms)

    def _number(self, at_ms: int) -> int:
        reset = max(0, bisect_right(self._resets_ms, at_ms) - 1)
        number = self._begins[reset] + (at_ms - self._resets_ms[reset]) // self._window_ms
        return min([number, *(begin - 1 for begin in self._begins[reset + 1 : reset + 2])])
