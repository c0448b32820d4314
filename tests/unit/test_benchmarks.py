"""What the benchmarks judge with: the provider's record, and the bound of fairness."""

import pytest

from schemas.inputs import Prices
from streams.core.fairness import Lane
from tests.benchmarks.lag import Watch, largest_lag
from tests.benchmarks.play import MILLION, Call, Play, Way, tenants
from tests.benchmarks.record import Record, Seen
from tests.support import core as c

WINDOW_MS = 1_000
SLIDING = c.dimension("tokens", 10, window_ms=WINDOW_MS)
SLOTS = c.dimension("slots", 10)


def recorded(*calls: tuple[int, int, int]) -> Record:
    record = Record()
    record.calls += [Seen(at, ended, "a", tokens, tokens) for at, ended, tokens in calls]
    return record


@pytest.mark.parametrize(
    ("second_us", "most"), [(0, 8), (999_999, 8), (1_000_000, 5), (5_000_000, 5)]
)
def test_a_window_begins_anywhere_and_does_not_hold_its_own_end(second_us, most):
    assert recorded((0, 1, 3), (second_us, second_us, 5)).peak(SLIDING) == most


def test_a_bucket_lacks_what_was_taken_and_has_not_been_refilled():
    bucket = c.dimension("tokens", 10, kind="bucket", window_ms=WINDOW_MS)
    assert recorded((0, 1, 6), (300_000, 300_001, 6)).peak(bucket) == 6 - 3 + 6
    assert recorded((0, 1, 6), (2_000_000, 2_000_001, 6)).peak(bucket) == 6


def test_a_slot_is_free_at_the_instant_at_which_its_call_ends():
    assert recorded((0, 10, 1), (10, 20, 1), (5, 12, 1)).peak(SLOTS) == 2


def test_what_was_used_of_slots_is_their_time_in_the_span():
    assert recorded((0, 10, 1), (5, 30, 1)).used(SLOTS, 8, 20) == 2 + 12


@pytest.mark.parametrize(
    ("unit", "reserved", "used"),
    [("tokens", 30, 9), ("input_tokens", 10, 5), ("output_tokens", 20, 4), ("money", 48, 15)],
)
def test_the_provider_counts_input_output_and_what_it_is_paid(unit, reserved, used):
    prices = Prices(currency="EUR", input_micros=700_000, output_micros=1_900_000, call_micros=3)
    call = Seen(0, 1, "a", 30, 9, 20, 4, prices)
    found = [call.amount(c.dimension(unit, 99, amount=amount)) for amount in ("reserved", "actual")]
    assert found == [reserved, used]


def play(weights: dict[str, int]) -> tuple[Play, Watch]:
    made = Play([SLOTS], tenants(**weights), way=Way(1_000), bounds={"grants_per_entry_max": 1})
    watch = Watch(made, weights)
    for name in weights:
        made.backlog(name, lambda name=name: Call(name, 5, made.chance.randint(50, 500)))
    made.run(12 * MILLION)
    return made, watch


def test_equal_seeds_give_equal_plays():
    weights = {"a": 2, "b": 1}
    (one, _), (other, _) = play(weights), play(weights)
    assert one.record.calls == other.record.calls
    assert one.core.rows.values == other.core.rows.values


def test_the_bound_of_fairness_holds_and_a_planted_breach_is_seen(monkeypatch):
    weights = {"a": 2, "b": 1}
    assert 0.1 < largest_lag(play(weights)[1], weights, WINDOW_MS) <= 1
    charge = Lane.charge

    def half_price(lane, counter, cost_ns, *rest):
        charge(lane, counter, cost_ns // 2 if counter.tenant == "a" else cost_ns, *rest)

    monkeypatch.setattr(Lane, "charge", half_price)
    assert largest_lag(play(weights)[1], weights, WINDOW_MS) > 1


@pytest.mark.parametrize(("transit_ms", "breached"), [(300, False), (0, True)])
def test_a_way_longer_than_the_allowance_is_seen_in_the_record(transit_ms, breached):
    requests = c.dimension("requests", 20, window_ms=WINDOW_MS)
    made = Play(
        [requests], tenants(a=1), way=Way(transit_us=300_000), domain={"transit_ms": transit_ms}
    )
    made.backlog("a", lambda: Call("a", 1, 5))
    made.run(20 * MILLION)
    assert (made.record.peak(requests) > requests.limit) is breached
