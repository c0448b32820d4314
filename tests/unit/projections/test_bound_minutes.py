"""R60 over the shipped core: a long queue, tight budgets in turn, and what each minute names."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from projections.follower import Follower
from projections.queries import Queries
from projections.rocks import RocksViews
from projections.views.bound import MINUTE_MS, Minute
from schemas import inputs as i
from schemas.ids import CellId, DomainId
from tests.support import cells as s
from tests.support import core as c
from tests.support.scene import BASE_MS, Scene, requests, slots, tokens
from tests.support.told import ToldJournal

LOOSE = {"requests": 10_000, "tokens": 1_000_000, "slots": 500}
TIGHT = {"requests": 6, "tokens": 700, "slots": 2}
SLIDING = {"kind": "sliding", "reset_ms": None}
SAMPLES_MAX = MINUTE_MS // i.CellConfig(tenant_defaults=i.TenantConfig()).deferral_sample_ms
QUEUE = 1_200
"""Jobs: more than all minutes of a test grant."""
EACH_MINUTES = 3
"""How long each budget is the tight one."""


def only(name: str, limit: int, **window: Any) -> list[i.DimensionConfig]:
    """Dimensions of which this one alone holds work back."""
    limits = {**LOOSE, name: limit}
    return [
        requests(limits["requests"], **window),
        tokens(limits["tokens"], **window),
        slots(limits["slots"]),
    ]


def scene_of(*dimensions: i.DimensionConfig, **over: Any) -> Scene:
    """Calls of two seconds; deferrals are sampled as often as they are by default."""
    scene = Scene(*dimensions, call_s=2, **over)
    scene.at(0, s.bounds())
    return scene


def queue(scene: Scene, count: int = QUEUE) -> list[i.OperationSubmitted]:
    return [scene.job(f"J{n}", est=100, tenant="ab"[n % 2]) for n in range(count)]


def minutes(cell: c.Core, path: Path) -> dict[int, Minute]:
    """What the view says of the cell's whole journal, by minute since the scene began."""
    journal, store = ToldJournal(), RocksViews(path)
    for made, decided in cell.entries:
        journal.time_ms = made.time_ms - 1
        journal.tell(*(((one.cause, one.event)) for one in decided), inputs=[(0, 0, QUEUE + 9)])
    name = CellId("cell")
    follower = Follower(cell=name, entries=journal, store=store, done=lambda _: None)
    while follower.step(0):
        pass
    found = Queries(name, store.snapshot()).bound("d", minutes=60)
    store.close()
    assert found is not None
    return {one.number - BASE_MS // MINUTE_MS: one for one in found}


def names(found: dict[int, Minute]) -> dict[int, set[tuple[str, str | None, str]]]:
    return {
        number: {(one.level, one.dimension, one.held_by) for one in minute.bindings}
        for number, minute in found.items()
    }


@pytest.mark.parametrize("order", [list(TIGHT), list(TIGHT)[::-1]], ids=["forth", "back"])
@pytest.mark.parametrize("window", [{}, SLIDING], ids=["fixed", "sliding"])
def test_each_minute_names_exactly_the_dimension_that_bound_in_it(
    order: Sequence[str], window: dict[str, Any], tmp_path: Path
) -> None:
    """R60: requests, tokens and slots bind in turn, and nothing else is ever named."""
    limits = [only(name, TIGHT[name], **window) for name in order]
    scene = scene_of(*limits[0])
    scene.at(0, *queue(scene))
    for turn in (1, 2):
        scene.at(turn * EACH_MINUTES * 60, c.domain(*limits[turn]))
    scene.at(3 * EACH_MINUTES * 60 - 1)
    found = minutes(scene.cell, tmp_path)
    assert names(found) == {
        minute: {("domain", order[minute // EACH_MINUTES], "budget")}
        for minute in range(3 * EACH_MINUTES)
    }
    for minute in found.values():
        (one,) = minute.bindings
        assert 1 <= one.samples <= SAMPLES_MAX
        assert minute.number * MINUTE_MS <= one.since_ms <= one.until_ms
        assert set(one.tenants) <= {"a", "b"}


def test_minutes_in_which_nothing_changes_have_no_sample(tmp_path: Path) -> None:
    scene = scene_of(slots(2))
    scene.call_s = 200
    scene.at(0, *queue(scene, 9))
    scene.at(299)
    assert list(minutes(scene.cell, tmp_path)) == [0, 3]


def test_a_domain_whose_limit_is_zero_pauses_in_every_minute(tmp_path: Path) -> None:
    scene = scene_of(*only("requests", 6))
    scene.at(0, *queue(scene))
    scene.at(120, c.domain(*only("requests", 0)))
    scene.at(300, c.domain(*only("slots", 2)))
    scene.at(359)
    found = names(minutes(scene.cell, tmp_path))
    assert {what for minute in (2, 3, 4) for what in found[minute]} == {
        ("domain", "requests", "limit_zero"),
        ("domain", "requests", "budget"),
    }
    assert found[3] == {("domain", "requests", "limit_zero")}
    assert found[1] == {("domain", "requests", "budget")}
    assert ("domain", "slots", "budget") in found[5]


def test_a_throttled_domain_is_named_as_paused_until_its_end(tmp_path: Path) -> None:
    scene = scene_of(*only("slots", 2))
    scene.at(0, *queue(scene, 3))
    (grant, _) = [one for _, one in scene.grants]
    scene.ends.clear()
    scene.at(1, c.result(grant, "throttled", retry_after_ms=130_000))
    scene.at(299)
    found = names(minutes(scene.cell, tmp_path))
    assert found[0] == {("domain", "slots", "budget"), ("domain", None, "throttled")}
    assert found[1] == {("domain", None, "throttled")}
    assert ("domain", None, "throttled") in found[2]
    assert 3 not in found


def test_a_tenants_own_cap_is_named_with_the_tenant(tmp_path: Path) -> None:
    budget = i.TenantBudget(domain=DomainId("d"), dimensions=(slots(1),))
    own = c.tenant("a", budgets=(budget,))
    scene = scene_of(*only("slots", 500), tenants=[own])
    scene.at(0, *[scene.job(f"J{n}", est=100, tenant="a") for n in range(3)])
    (one,) = minutes(scene.cell, tmp_path)[0].bindings
    assert (one.level, one.dimension, one.tenants) == ("tenant", "slots", ["a"])
