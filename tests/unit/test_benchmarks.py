"""What the benchmarks judge with: the provider's record, the bound of fairness, and the tape."""

from typing import Any

import pytest

from schemas.codec import decode, encode
from schemas.entry import Entry, EntryEvent, InputRun
from schemas.inputs import Prices
from schemas.topics import INPUT_TOPICS, Topic, input_key
from streams.core.fairness import Lane
from streams.shell.copies import copies
from tests.benchmarks import tape
from tests.benchmarks.lag import Watch, largest_lag
from tests.benchmarks.play import MILLION, Call, Play, Way, tenants
from tests.benchmarks.record import Record, Seen
from tests.support import core as c
from tests.support.cells import grants
from tests.support.kafka import Got

WINDOW_MS = 1_000
SLIDING = c.dimension("tokens", 10, window_ms=WINDOW_MS)
SLOTS = c.dimension("slots", 10)
HEADER = {
    "generation": 1,
    "previous": 0,
    "height": 1,
    "epoch": 1,
    "owner": bytes(16),
    "takeover": False,
    "time_ms": 0,
    "clock_shift_ms": 0,
    "published": 0,
    "core_version": 1,
    "state_hash": bytes(32),
}


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


@pytest.fixture
def lived() -> tuple[dict[int, bytes], dict[Topic, list[Got]]]:
    """Entries and records of two lifecycles and a heartbeat."""
    core = c.Core()
    core.run(c.domain(c.dimension("slots", 9)), c.pool(domains=("d",)), c.join(places=2))
    asked = [c.submitted("a", "1"), c.submitted("b", "2"), c.heartbeat()]
    granted = grants(core.run(*asked))
    taken = asked, [*map(c.start, granted)], [*map(c.result, granted)]
    first = core.height
    for words in taken[1:]:
        core.run(*words)
    entries, found = {}, {topic: [] for topic in Topic}
    for offset, words in enumerate(taken, first):
        runs = [_sent(found[INPUT_TOPICS[c.TOPIC_OF[type(word)]]], word) for word in words]
        decided = [EntryEvent(cause=0, body=encode(it.event)) for it in core.entries[offset][1]]
        entry = Entry(**HEADER, inputs=tuple(runs), events=tuple(decided))
        entries[offset] = encode(entry)
        for out in copies(entry, offset, cell="main", prefix="run"):
            there, headers = found[out.topic], dict(out.headers)
            there.append(Got(0, len(there), offset, out.key, out.value, headers))
    return entries, found


def _sent(there: list[Got], word: Any) -> InputRun:
    at = len(there)
    there.append(Got(0, at, at, input_key(word), encode(word), {}))
    return InputRun(topic=c.TOPIC_OF[type(word)], partition=0, first=at, next=at + 1)


def test_a_tape_has_each_record_once_and_what_must_come_before_it(lived):
    entries, found = lived
    strangers = found[Topic.DECISIONS][0]._replace(headers={"position": "main:1:99:0"})
    found[Topic.DECISIONS].append(strangers)
    wound = tape.wind(entries, found)
    assert [step.needs for step in wound.steps] == [(0, 1, 2), (2, 0, 0), (2, 0, 0)]
    assert [len(step.deliveries) for step in wound.steps] == [2, 2, 0]
    kinds = [type(decode(value)).__name__ for value in wound.answers]
    assert kinds == ["GrantIssued", "GrantIssued", "StartAccepted", "StartAccepted"]
    found[Topic.DECISIONS].remove(strangers)
    assert len([*wound.records()]) == sum(map(len, found.values()))


@pytest.mark.parametrize("topic", [Topic.STARTS, Topic.GRANTS, Topic.DELIVERIES])
def test_no_tape_is_made_of_a_stretch_that_lacks_a_record(lived, topic):
    entries, found = lived
    found[topic].pop()
    with pytest.raises((AssertionError, KeyError)):
        tape.wind(entries, found)


def test_a_byte_that_was_not_carried_is_seen(lived):
    entries, found = lived
    wound = tape.wind(entries, found)
    found[Topic.JOURNAL] = [Got(0, at, 0, None, value, {}) for at, value in entries.items()]
    assert tape.differences(wound, found) == {}
    settled = found[Topic.SETTLEMENTS]
    settled[0] = settled[0]._replace(key="c")
    found[Topic.RESULTS].pop()
    assert tape.differences(wound, found) == {Topic.SETTLEMENTS: 2, Topic.RESULTS: 1}
