"""What looks like a retry under a new key is counted, and nothing else (requirement R16)."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from projections.views.repeat import RECENT_MAX, SPAN_MS
from tests.support.folding import Fold
from tests.support.told import START_MS, Told

LATER_MS = START_MS + 1_000


@pytest.fixture
def fold(tmp_path: Path) -> Iterator[Fold]:
    made = Fold(tmp_path)
    yield made
    made.store.close()


class Keys:
    """Admissions of one tenant, each under a key of its own."""

    def __init__(self, fold: Fold) -> None:
        self._fold = fold
        self._count = 0

    def admit(self, payload: str | None, *, at_ms: int | None = None) -> int:
        """Returns: how many are suspected by then."""
        self._count += 1
        told = Told(f"key-{self._count}", sequence=self._count)
        digest = (payload or "").encode().ljust(32, b"-")
        event = replace(told.admitted(), payload_ref=payload, payload_digest=digest)
        if at_ms is not None:
            self._fold.journal.time_ms = at_ms - 1
        asked = self._fold.tell((0, event), inputs=[(0, 0, 1)])
        return asked.suspected_new_keys(told.tenant)


def test_the_same_payload_under_a_new_key_is_counted_each_time(fold: Fold) -> None:
    keys = Keys(fold)
    assert [keys.admit(payload) for payload in ("a", "b", "a", "a")] == [0, 0, 1, 2]


def test_only_within_the_span(fold: Fold) -> None:
    keys = Keys(fold)
    keys.admit("a", at_ms=LATER_MS)
    assert keys.admit("a", at_ms=LATER_MS + SPAN_MS) == 0
    assert keys.admit("a", at_ms=LATER_MS + 2 * SPAN_MS - 1) == 1


def test_what_has_no_reference_cannot_be_told_apart(fold: Fold) -> None:
    keys = Keys(fold)
    assert [keys.admit(None), keys.admit(None)] == [0, 0]


def test_the_latest_payloads_are_remembered(fold: Fold) -> None:
    keys = Keys(fold)
    for number in range(RECENT_MAX + 1):
        keys.admit(f"p{number}")
    assert keys.admit("p1") == 1
    assert keys.admit("p0") == 1
