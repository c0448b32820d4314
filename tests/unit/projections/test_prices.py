"""Money in the budget view: each charge at the prices of the grant that it belongs to."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.folding import Fold
from tests.support.told import START_MS, Told
from tests.support.words import e, i

MONEY = i.DimensionConfig(name="money", unit="money", kind="sliding", limit=9_999, window_ms=60_000)
TOLD = Told()


def priced(event: Any, micros: int) -> Any:
    return replace(event, money_micros=micros)


@pytest.mark.parametrize(("granted_again_at", "counts"), [(None, 130), (500, 630), (90, 220)])
def test_late_usage_is_held_against_what_its_own_grant_reserved(
    granted_again_at: int | None, counts: int, tmp_path: Path
) -> None:
    """100 were reserved and 80 used; later 130 are told, whatever a newer grant costs."""
    fold = Fold(tmp_path)
    domain = i.DomainConfig(dimensions=(MONEY,))
    about = {"version": 2, "author": "test", "reason": "test"}
    fold.tell(e.ConfigActivated(scope="domain", name="d", domain=domain, **about))
    fold.admit(TOLD)
    fold.tell(priced(TOLD.granted(), 100), *TOLD.started(START_MS + 200))
    again = TOLD.again()
    fold.tell(TOLD.result("retryable"), priced(TOLD.settled(), 80))
    if granted_again_at is not None:
        unparked = e.OperationUnparked(tenant="acme", operation=TOLD.id)
        fold.tell(TOLD.scheduled("retryable", START_MS + 50), unparked)
        fold.tell(priced(again.granted(), granted_again_at))
    corrected = e.UsageCorrected(
        **TOLD.attempt, domain="d", evidence="u", tokens_before=240, tokens_actual=300,
        money_before_micros=80, money_actual_micros=130,
    )  # fmt: skip
    (use,) = fold.tell(corrected).budgets("d")[0].dimensions
    assert use.counted == counts
    fold.store.close()
