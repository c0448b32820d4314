"""When a charge leaves its window: never before the provider has surely let go of the call.

    sliding   latest arrival + W + 1 ms + rho * (W + send-within)
    fixed     the end of the last window into which the call can fall: windows follow from the last
              known reset, and the last one before the next known reset ends there
    bucket    latest arrival + 1 ms + rho * send-within: from there on it is refilled (`windows`)

Rounded up to a bucket of W/256, but for a known reset, which no rounding makes safer.

>>> from functools import partial
>>> one = partial(DimensionConfig, name="one", unit="tokens", limit=1, window_ms=1_000)
>>> exit_ms(one(kind="sliding"), latest_ms=1_000, send_within_ms=200)  # 2,002, in buckets of 4
2004
>>> exit_ms(one(kind="bucket"), latest_ms=1_000, send_within_ms=200)  # 1,002
1004
>>> exit_ms(one(kind="fixed", reset_ms=0), latest_ms=999, send_within_ms=200)
1000
>>> longer = one(kind="fixed", reset_ms=0, later_resets_ms=(3_100,))
>>> [exit_ms(longer, latest_ms=at, send_within_ms=200) for at in (1_999, 2_000, 3_099, 3_100)]
[2000, 3100, 3100, 4100]
"""

from bisect import bisect_right

import msgspec

from schemas.inputs import DimensionConfig
from schemas.units import Millis

from .limits import BUCKET_MS_MIN, BUCKETS_PER_WINDOW, CLOCK_SPREAD_MS, RHO_PPM

MILLION = 1_000_000


def bucket_ms(dimension: DimensionConfig) -> Millis:
    """Length of a bucket: W/256, at least 1 ms; exits are rounded up to its multiples."""
    assert dimension.window_ms is not None
    return max(BUCKET_MS_MIN, Millis(-(-dimension.window_ms // BUCKETS_PER_WINDOW)))


def exit_ms(dimension: DimensionConfig, *, latest_ms: Millis, send_within_ms: Millis) -> Millis:
    """The instant from which a charge whose call arrives at `latest_ms` at last no longer counts.

    Half-open: at the exit it counts no more (R47, R172). Sliding: scheduling.md section 5. Fixed
    with a known reset, give or take u: the provider's edge may lie u earlier, so that the call
    falls into the next window, and that window may end u later.
    """
    window_ms = dimension.window_ms
    assert window_ms is not None
    if dimension.kind == "fixed" and dimension.reset_ms is not None:
        u = dimension.reset_uncertainty_ms
        return Millis(_ends_ms(dimension, dimension.reset_ms, window_ms, latest_ms + u) + u)
    span_ms = 0 if dimension.kind == "bucket" else window_ms
    rho = -(-RHO_PPM * (span_ms + send_within_ms) // MILLION)
    exact = latest_ms + span_ms + 1 + rho
    size = bucket_ms(dimension)
    return Millis(-(-exact // size) * size)


def _ends_ms(dimension: DimensionConfig, reset_ms: int, window_ms: int, at_ms: int) -> int:
    """The end of the fixed window into which an instant falls."""
    later = dimension.later_resets_ms
    passed = bisect_right(later, at_ms)
    begin_ms = later[passed - 1] if passed else reset_ms
    ends_ms = begin_ms + ((at_ms - begin_ms) // window_ms + 1) * window_ms
    if passed < len(later) and 2 * (later[passed] - ends_ms) < window_ms:
        return later[passed]  # what is left before it belongs to this window
    return ends_ms


class Aging(msgspec.Struct, gc=False):
    """What takeovers add: a charge that lives over one leaves a takeover term later, once."""

    epoch: int = 0
    """Of the owner in force."""
    term_ms: Millis = Millis(0)

    def leaves_ms(self, epoch: int, exit_at: Millis) -> Millis:
        """When a charge leaves that got this exit in that epoch."""
        return Millis(exit_at + self.term_ms) if epoch < self.epoch else exit_at


def takeover_term_ms(clock_bound_ms: Millis) -> Millis:
    """How far entry time may run ahead over takeovers; added once to a charge over one."""
    return Millis(clock_bound_ms + CLOCK_SPREAD_MS)


def parse_bucket_key(key: bytes) -> tuple[str, str, str, int, Millis]:
    """Scope, domain, dimension, epoch and exit of a row of `Table.BUCKET`."""
    scope, domain, dimension, rest = key.split(b"\x00", 3)
    epoch, exit_at = int.from_bytes(rest[:8], "big"), int.from_bytes(rest[8:16], "big")
    return scope.decode(), domain.decode(), dimension.decode(), epoch, Millis(exit_at)
