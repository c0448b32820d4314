"""What a provider says about its callers: every window of its own record, judged exactly.

Nothing of Evenhand is used here, neither its windows nor its clock: this is the other side. A call
above any limit is overshoot; it stays in the window, and the calls after it are judged with it:

>>> judge = Judge(Limits(requests=2, tokens=100, slots=9, window_ms=1000))
>>> [judge.arrive(at_ms * 1_000_000, tokens=50) for at_ms in (0, 1, 1000, 1002)]
[(), (), ('requests', 'tokens'), ()]
>>> judge.verdict().overshoot_calls, judge.verdict().overshoot_tokens, judge.verdict().peak_requests
(1, 50, 3)
"""

from collections import Counter, deque
from dataclasses import dataclass

_NANOS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one window may hold, ends included, and how many calls may overlap."""

    requests: int
    tokens: int
    slots: int
    window_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """All windows so far. A peak is the largest amount of any window, wherever it begins."""

    calls: int
    repeats: int
    """Calls beyond the first with one idempotency key, refused ones aside: those did nothing."""
    overshoot_calls: int
    """Calls that arrived where a window or the overlap was full."""
    overshoot_tokens: int
    """By how much the fullest window exceeded the limit."""
    peak_requests: int
    peak_tokens: int
    peak_slots: int
    requests: int
    """In the window that ends with the last arrival, as the next two."""
    tokens: int
    slots: int

    @property
    def clean(self) -> bool:
        """No call was above a limit, and none was executed twice."""
        return self.overshoot_calls == 0 and self.repeats == 0


class Judge:
    """A sliding count over arrivals: the fullest window of all ends at one of them."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._window: deque[tuple[int, int]] = deque()
        self._tokens = self._slots = 0
        self._over = self._tokens_over = self._calls = self._executed = 0
        self._peak: Counter[str] = Counter()
        self._keys: set[str] = set()

    def arrive(self, at_ns: int, *, tokens: int, key: str | None = None) -> tuple[str, ...]:
        """Count one call, at an instant of the provider's own clock that never goes back.

        Returns: what it exceeded; empty if it was within all limits. It occupies its slot in any
        case, until `leave`.
        """
        self._calls += 1
        while self._window and self._window[0][0] < at_ns - self.limits.window_ms * _NANOS:
            self._tokens -= self._window.popleft()[1]
        self._window.append((at_ns, tokens))
        self._tokens += tokens
        self._slots += 1
        amounts = {"requests": len(self._window), "tokens": self._tokens, "slots": self._slots}
        self._peak |= Counter(amounts)
        over = tuple(name for name, amount in amounts.items() if amount > _limit(self, name))
        if over:
            self._over += 1
        else:
            self._executed += 1
            self._keys.add(key or str(self._calls))
        self._tokens_over = max(self._tokens_over, self._tokens - self.limits.tokens)
        return over

    def leave(self) -> None:
        """One call has been answered."""
        self._slots -= 1

    def verdict(self) -> Verdict:
        """As of the last arrival."""
        return Verdict(
            calls=self._calls,
            repeats=self._executed - len(self._keys),
            overshoot_calls=self._over,
            overshoot_tokens=self._tokens_over,
            peak_requests=self._peak["requests"],
            peak_tokens=self._peak["tokens"],
            peak_slots=self._peak["slots"],
            requests=len(self._window),
            tokens=self._tokens,
            slots=self._slots,
        )


def _limit(judge: Judge, dimension: str) -> int:
    return int(getattr(judge.limits, dimension))
