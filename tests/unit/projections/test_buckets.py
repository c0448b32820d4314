"""What the budget view says of a bucket: how much is missing in it now."""

import pytest

from projections.views.budget import EXITS_KEPT_MAX, Use, _leave, counted, exit_ms
from tests.support.words import i

BUCKET = i.DimensionConfig(name="t", unit="tokens", kind="bucket", limit=10, window_ms=1_000)


@pytest.mark.parametrize(
    ("now_ms", "missing"), [(999, 4), (1_000, 4), (1_101, 3), (1_201, 2), (1_401, 0), (9_000, 0)]
)
def test_what_arrived_counts_less_and_less(now_ms: int, missing: int) -> None:
    row = Use(exits={"t": {exit_ms(BUCKET, latest_ms=999, send_within_ms=5): 4}})
    assert counted(row, BUCKET, now_ms) == missing


def test_what_is_no_longer_kept_one_by_one_still_counts() -> None:
    row, kept = Use(), Use()
    for at_ms in range(1, EXITS_KEPT_MAX + 2):
        kept.exits.setdefault("t", {})[at_ms] = 1
        _leave(row, BUCKET, at_ms, 1, at_ms)
    now_ms = EXITS_KEPT_MAX + 200
    assert len(row.exits["t"]) < len(kept.exits["t"])
    assert counted(row, BUCKET, now_ms) == counted(kept, BUCKET, now_ms) > 0
