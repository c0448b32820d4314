"""Budgets and ledgers of domains with limits of input, output and money."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.door import Entrance, entrance
from tests.support.told import SLOTS, START_MS, Told
from tests.support.words import e, i

UNITS = ("input_tokens", "output_tokens", "money")
PRICES = i.Prices(currency="EUR", input_micros=3_000_000, output_micros=15_000_000)
PAID = 200 * 3 + 100 * 15
"""What a call of 200 and 100 tokens costs, which is what `Told` asks for."""


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Entrance]:
    with entrance(tmp_path) as made:
        yield made


def limited(door: Entrance) -> None:
    window: dict[str, Any] = {"kind": "sliding", "window_ms": 60_000, "amount": "actual"}
    dimensions = [i.DimensionConfig(name=unit, unit=unit, limit=10_000, **window) for unit in UNITS]
    domain = i.DomainConfig(dimensions=(*dimensions, SLOTS), prices=PRICES)
    common = {"version": 2, "author": "test", "reason": "test"}
    door.tell(e.ConfigActivated(scope="domain", name="d", domain=domain, **common))


def uses(door: Entrance) -> dict[str, Any]:
    (level,) = door.ask("GET", "/v1/budgets/d").json()["items"]
    return {use["dimension"]: use for use in level["dimensions"]}


def amounts(door: Entrance, name: str) -> list[int]:
    return [uses(door)[unit][name] for unit in UNITS]


def started(door: Entrance) -> Told:
    told = Told("k")
    door.tell((0, told.admitted()), inputs=[(0, 0, 1)])
    door.tell(replace(told.granted(), money_micros=PAID))
    return told


def test_each_unit_is_held_used_and_counted_and_money_has_a_currency(door: Entrance) -> None:
    limited(door)
    told = started(door)
    assert amounts(door, "held") == [200, 100, PAID]
    door.tell(*told.started(START_MS + 200))
    assert (amounts(door, "held"), amounts(door, "in_use")) == ([0, 0, 0], [200, 100, PAID])
    assert amounts(door, "counted") == [200, 100, PAID]
    currencies = [uses(door)[unit]["currency"] for unit in (*UNITS, "slots")]
    assert currencies == [None, None, "EUR", None]


def test_use_and_its_correction_count_in_each_unit(door: Entrance) -> None:
    limited(door)
    told = started(door)
    settled = replace(told.settled(150), input_tokens_actual=50, money_micros=50 * 3 + 100 * 15)
    door.tell(*told.started(START_MS + 200), told.result(), settled)
    assert amounts(door, "counted") == [50, 100, 1_650]
    corrected = e.UsageCorrected(
        **told.attempt,
        domain="d",
        evidence="u",
        tokens_before=150,
        tokens_actual=180,
        input_tokens_before=50,
        input_tokens_actual=30,
        money_before_micros=1_650,
        money_actual_micros=30 * 3 + 150 * 15,
    )
    door.tell(corrected)
    assert amounts(door, "counted") == [50, 150, 2_340]
    (ledger,) = door.ask("GET", "/v1/tenants/acme/entitlement").json()["items"]
    pacing = ledger["pacing"]
    assert (pacing["money_micros"], pacing["currency"], pacing["tokens_corrected"]) == (
        2_340,
        "EUR",
        30,
    )


def test_an_unknown_call_holds_its_money_until_it_is_forfeited(door: Entrance) -> None:
    limited(door)
    told = started(door)
    door.tell(*told.started(START_MS + 200), told.unknown())
    assert amounts(door, "unknown") == [200, 100, PAID]
    door.tell(
        e.ReservationForfeited(
            **told.attempt, domain="d", tokens_reserved=300, held_ms=1, cost_ns=1
        )
    )
    assert (amounts(door, "unknown"), amounts(door, "counted")) == ([0, 0, 0], [200, 100, PAID])
    (ledger,) = door.ask("GET", "/v1/tenants/acme/entitlement").json()["items"]
    assert ledger["pacing"]["money_micros"] == PAID


def test_a_ledger_without_prices_has_no_currency(door: Entrance) -> None:
    told = Told("k")
    door.tell((0, told.admitted()), inputs=[(0, 0, 1)])
    door.tell(told.granted())
    (ledger,) = door.ask("GET", "/v1/tenants/acme/entitlement").json()["items"]
    assert (ledger["pacing"]["money_micros"], ledger["pacing"]["currency"]) == (0, None)
