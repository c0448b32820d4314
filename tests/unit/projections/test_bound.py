"""Which dimension bound in each minute: samples by minute, pauses until they end, a day of it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from projections.follower import Follower, digests
from projections.keys import join
from projections.queries import Queries
from projections.rocks import RocksViews
from projections.views.bound import BINDINGS_MAX, BOUND, MINUTE_MS, MINUTES_KEPT, TENANTS_MAX
from schemas.ids import CellId
from tests.support.folding import Fold
from tests.support.told import SLOTS, START_MS, Told
from tests.support.words import e, i

BASE_MS = START_MS - START_MS % MINUTE_MS + MINUTE_MS


@pytest.fixture
def fold(tmp_path: Path) -> Iterator[Fold]:
    made = Fold(tmp_path)
    yield made
    made.store.close()


def at(fold: Fold, minute: float, *events: Any) -> Queries:
    """The answers once an entry of this minute has these events."""
    fold.journal.time_ms = BASE_MS + round(minute * MINUTE_MS) - 1
    return fold.tell(*events)


def deferred(
    dimension: str = "slots", *, tenant: str = "acme", domain: str = "d", **over: Any
) -> Any:
    named = {"tenant": tenant, "operation": Told(tenant=tenant).id, "domain": domain}
    return e.OperationDeferred(**{**named, "level": "domain", "dimension": dimension, **over})


def domain(*dimensions: i.DimensionConfig, version: int = 2) -> Any:
    body = i.DomainConfig(dimensions=dimensions)
    common = {"version": version, "author": "test", "reason": "test"}
    return e.ConfigActivated(scope="domain", name="d", domain=body, **common)


def cooldown(until: float | None, cause: str = "throttled") -> Any:
    until_ms = None if until is None else BASE_MS + round(until * MINUTE_MS)
    return e.CooldownSet(domain="d", cause=cause, until_ms=until_ms)


def bound(asked: Queries, minutes: int = MINUTES_KEPT) -> dict[int, list[tuple[str | None, str]]]:
    """Dimension and what held back, by minute since the base."""
    found = asked.bound("d", minutes=minutes)
    assert found is not None
    return {
        minute.number - BASE_MS // MINUTE_MS: [
            (one.dimension, one.held_by) for one in minute.bindings
        ]
        for minute in found
    }


def test_a_minute_names_what_bound_in_it_how_often_from_when_to_when_and_whom(fold: Fold) -> None:
    at(fold, 0, deferred("slots"), deferred("tokens-1s", held_by="pace", tenant="bolt"))
    at(fold, 0.25, deferred("slots", tenant="bolt"))
    at(fold, 0.5, deferred("slots"))
    asked = at(fold, 1.5, deferred("own", level="tenant"))
    first, second = asked.bound("d", minutes=2) or []
    assert first.number * MINUTE_MS == BASE_MS
    slots, tokens = first.bindings
    assert (slots.level, slots.dimension, slots.held_by) == ("domain", "slots", "budget")
    assert (slots.samples, slots.tenants) == (3, ["acme", "bolt"])
    assert (slots.since_ms, slots.until_ms) == (BASE_MS, BASE_MS + MINUTE_MS // 2)
    assert (tokens.held_by, tokens.samples, tokens.tenants) == ("pace", 1, ["bolt"])
    (own,) = second.bindings
    assert (own.level, own.dimension) == ("tenant", "own")


def test_the_last_instant_of_a_minute_is_its_own(fold: Fold) -> None:
    at(fold, 1 - 1 / MINUTE_MS, deferred("slots"))
    assert bound(at(fold, 1, deferred("tokens-1s"))) == {
        0: [("slots", "budget")],
        1: [("tokens-1s", "budget")],
    }


def test_a_minute_without_a_sample_is_left_out(fold: Fold) -> None:
    at(fold, 0, deferred())
    assert list(bound(at(fold, 7, deferred()))) == [0, 7]
    assert list(bound(at(fold, 8), minutes=2)) == [7]


def test_a_domain_has_minutes_of_its_own(fold: Fold) -> None:
    asked = at(fold, 0, deferred(domain="d2"))
    assert bound(asked) == {}
    assert asked.bound("d2", minutes=1) is None, "Expected a domain that is not configured"


# -- pauses -------------------------------------------------------------------------------------


def test_a_cooldown_binds_in_every_minute_until_its_end(fold: Fold) -> None:
    at(fold, 0.5, cooldown(2.25))
    asked = at(fold, 5)
    assert bound(asked) == {minute: [(None, "throttled")] for minute in range(3)}
    spans = [
        (one.since_ms, one.until_ms)
        for m in asked.bound("d", minutes=9) or []
        for one in m.bindings
    ]
    assert [((a - BASE_MS) / MINUTE_MS, (b + 1 - BASE_MS) // 1_000) for a, b in spans] == [
        (0.5, 60),
        (1, 120),
        (2, 135),
    ]


def test_a_cooldown_that_lasts_still_binds_now_and_goes_on_if_it_is_moved(fold: Fold) -> None:
    at(fold, 0, cooldown(2))
    assert list(bound(at(fold, 1))) == [0, 1]
    at(fold, 1.5, cooldown(4))
    assert list(bound(at(fold, 9))) == [0, 1, 2, 3]


def test_configuring_the_domain_ends_a_pause(fold: Fold) -> None:
    at(fold, 0, cooldown(None, "quota_exhausted"))
    assert list(bound(at(fold, 3))) == [0, 1, 2, 3]
    at(fold, 4.5, domain(SLOTS))
    assert list(bound(at(fold, 9))) == [0, 1, 2, 3, 4]
    at(fold, 9.25, cooldown(None, "quota_exhausted"), domain(SLOTS, version=3))
    (minute,) = at(fold, 12).bound("d", minutes=4) or []
    assert [one.until_ms - one.since_ms for one in minute.bindings] == [0]


def test_a_limit_of_zero_is_a_pause_of_its_dimension(fold: Fold) -> None:
    none = i.DimensionConfig(name="slots", unit="slots", kind="concurrency", limit=0)
    at(fold, 0, domain(none))
    at(fold, 2.5, domain(SLOTS, version=3))
    assert bound(at(fold, 9)) == {minute: [("slots", "limit_zero")] for minute in range(3)}


def test_what_paused_longer_than_minutes_are_kept_still_binds(fold: Fold) -> None:
    none = i.DimensionConfig(name="slots", unit="slots", kind="concurrency", limit=0)
    at(fold, 0, domain(none), cooldown(None, "quota_exhausted"))
    found = bound(at(fold, 3 * MINUTES_KEPT))
    assert len(found) == MINUTES_KEPT
    both = {("slots", "limit_zero"), (None, "quota_exhausted")}
    assert all(set(minute) == both for minute in found.values())


# -- bounds, and what a journal may hold ----------------------------------------------------------


def test_a_day_is_kept_and_no_more(fold: Fold) -> None:
    sampled = range(0, 3 * MINUTES_KEPT, 7)
    for minute in sampled:
        asked = at(fold, minute, deferred())
    assert list(bound(asked)) == [m for m in sampled if m > sampled[-1] - MINUTES_KEPT]
    assert len(list(asked.rows(BOUND, join("d")))) <= MINUTES_KEPT


@pytest.mark.parametrize(("later", "kept"), [(MINUTES_KEPT - 1, [0]), (MINUTES_KEPT, [])])
def test_a_minute_goes_when_it_is_a_day_old(fold: Fold, later: int, kept: list[int]) -> None:
    at(fold, 0, deferred())
    assert list(bound(at(fold, later))) == kept


def test_a_minute_takes_the_row_of_the_one_a_day_before(fold: Fold) -> None:
    at(fold, 0, deferred("tokens-1s"), cooldown(1))
    asked = at(fold, MINUTES_KEPT, deferred("slots"))
    assert bound(asked) == {MINUTES_KEPT: [("slots", "budget")]}
    rows = [row for _, row in asked.rows(BOUND, join("d"))]
    assert [row.number for row in rows if row.bindings] == [BASE_MS // MINUTE_MS + MINUTES_KEPT]


def test_one_minute_keeps_a_bounded_number_of_bindings_tenants_and_pauses(fold: Fold) -> None:
    dimensions = [deferred(f"own-{n}", level="tenant") for n in range(BINDINGS_MAX + 3)]
    tenants = [deferred("own-0", level="tenant", tenant=f"t{n}") for n in range(TENANTS_MAX + 3)]
    (minute,) = at(fold, 0, *dimensions, *tenants).bound("d", minutes=1) or []
    assert (len(minute.bindings), minute.further) == (BINDINGS_MAX, 3)
    assert minute.bindings[0].samples == 1 + len(tenants)
    assert minute.bindings[0].tenants == ["acme", *(f"t{n}" for n in range(TENANTS_MAX - 1))]
    for n in range(50):
        zero = i.DimensionConfig(name=f"slots-{n}", unit="slots", kind="concurrency", limit=0)
        at(fold, 2, domain(zero, version=2 + n))
    (row,) = [row for _, row in fold.tell().rows(BOUND, join("d")) if row.pauses]
    assert len(row.pauses) == 16


def test_repeated_and_late_records_of_the_journal_are_no_samples(fold: Fold) -> None:
    at(fold, 0, deferred())
    accepted = fold.journal.records[-1].value
    fold.journal.append(accepted)
    fold.journal.tell(deferred("late"), height=1, time_ms=BASE_MS - MINUTE_MS)
    (minute,) = at(fold, 0.5).bound("d", minutes=9) or []
    assert [(one.dimension, one.samples) for one in minute.bindings] == [("slots", 1)]


def test_folding_again_gives_the_same_rows(fold: Fold, tmp_path: Path) -> None:
    for minute in range(0, 2 * MINUTES_KEPT, 11):
        names = [("slots", "bolt"), ("tokens-1s", "acme")][minute % 2]
        told = [deferred(names[0], tenant=names[1])]
        told += [cooldown(minute + 3)] if minute % 5 == 0 else []
        at(fold, minute, *told, *([domain(SLOTS)] if minute % 13 == 0 else []))
    store = RocksViews(tmp_path / "again")
    again = Follower(cell=CellId("main"), entries=fold.journal, store=store, done=lambda _: None)
    while again.step(0):
        pass
    assert digests(store)["bound"] == digests(fold.store)["bound"]
    store.close()
