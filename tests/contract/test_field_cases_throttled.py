"""Field cases about what a provider says when it takes no call, by their numbers."""

import pytest

from evenhand._retry_after import millis_up
from schemas import events as e
from tests.support import cells as s
from tests.support import core as c
from tests.support.scene import BASE_MS, Scene, slots, tokens

LONG = 10**6
"""A call that does not end within the case."""


def throttled(grant, retry_after_ms=None, outcome="throttled"):
    """A refusal as a member tells it: the header read, the figures of use absent."""
    return c.result(
        grant, outcome, retry_after_ms=retry_after_ms, prompt_tokens=None, output_tokens=None
    )


def until_s(events):
    """Until when the provider is blocked, in seconds; None for until an operator acts."""
    told = s.one(e.CooldownSet, events)
    return None if told.until_ms is None else (told.until_ms - BASE_MS) / 1_000


HINTS = [
    # Retry-After as the member understood it, and how long the provider is blocked
    (300_000, 300),  # a date five minutes ahead
    (5_000, 5),
    (0, 0),
    (500, 0.5),
    (0, 0),  # a date in the past
    (61_000, 61),
    (120_000, 120),
    (86_400_000, 86_400),
    (None, 60),  # -1, abc, or no header: the default
    (-1, 60),
    (4_321, 4.321),  # retry-after-ms beside Retry-After
]


@pytest.mark.parametrize(("hint_ms", "blocked_s"), HINTS)
def test_f14_a_provider_is_blocked_as_long_as_it_says(hint_ms, blocked_s):
    scene = Scene(slots(1), call_s=LONG)
    scene.at(0, scene.job("first", start_within_ms=10**9))
    scene.at(1, *[scene.job(f"waits {n}", start_within_ms=10**9) for n in range(3)])
    (_, grant) = scene.grants[0]
    events = scene.at(2, throttled(grant, hint_ms))
    if blocked_s:
        assert until_s(events) == 2 + blocked_s
        scene.at(2 + blocked_s - 0.001)
        assert len(scene.grants) == 1
    scene.at(2 + blocked_s)
    assert [scene.names[one.operation] for _, one in scene.grants] == ["first", "first"]
    row = scene.cell.state.operation(grant.operation)
    assert (row.more.tries, row.epoch) == (0, 2)


@pytest.mark.parametrize(
    ("said_s", "blocked_s"), [(45.837906927, 45.838), (26.660853464, 26.661), (0.373801628, 0.374)]
)
def test_f16_a_wait_with_parts_of_a_millisecond_is_never_cut_short(said_s, blocked_s):
    """The worker finds the figure in the provider's answer; here it is kept."""
    scene = Scene(slots(1), call_s=LONG)
    scene.at(0, scene.job("first"), scene.job("second"))
    events = scene.at(1, throttled(scene.grants[0][1], millis_up(said_s)))
    assert until_s(events) == 1 + blocked_s
    scene.at(1 + blocked_s - 0.001)
    assert len(scene.grants) == 1
    scene.at(1 + blocked_s)
    assert len(scene.grants) == 2


def test_f17_an_empty_account_blocks_until_an_operator_acts_and_nothing_is_tried_again():
    scene = Scene(slots(1), tokens(10_000, amount="actual"), call_s=LONG)
    jobs = [scene.job(str(n), 100, start_within_ms=10**8) for n in range(10)]
    scene.at(0, *jobs)
    events = scene.at(1, throttled(scene.grants[0][1], outcome="quota_exhausted"))
    assert until_s(events) is None
    scene.at(50_000)
    assert len(scene.grants) == 1
    rows = [scene.cell.state.operation(c.id_of(job)) for job in jobs]
    assert {(str(row.phase), row.more.tries) for row in rows} == {("waiting", 0)}
    assert s.used(scene.cell, "tokens") == 0
    scene.at(50_001, scene.domain(slots(1), tokens(10_000, amount="actual")))
    assert scene.names[scene.grants[1][1].operation] == "0"


def test_f17_a_passing_limit_blocks_as_long_as_it_says_and_charges_no_tokens():
    scene = Scene(slots(1), tokens(10_000, amount="actual"), call_s=LONG)
    scene.at(0, *[scene.job(str(n), 100) for n in range(10)])
    assert until_s(scene.at(1, throttled(scene.grants[0][1], 2_000))) == 3
    assert s.used(scene.cell, "tokens") == 0
    scene.at(3)
    assert len(scene.grants) == 2


def test_f18_a_later_block_counts_and_a_late_success_lifts_none():
    scene = Scene(slots(3), call_s=LONG)
    scene.at(0.1, *[scene.job(name) for name in "ABC"])
    grants = [grant for _, grant in scene.grants]
    assert until_s(scene.at(0.5, throttled(grants[0], 1_000))) == 1.5
    assert until_s(scene.at(0.7, throttled(grants[1]))) == 60.7
    scene.at(0.9, c.result(grants[2]))
    scene.at(60.699)
    assert len(scene.grants) == 3
    scene.at(60.7)
    assert len(scene.grants) == 5


def test_f18_a_shorter_block_does_not_end_a_longer_one():
    scene = Scene(slots(2), call_s=LONG)
    scene.at(0, *[scene.job(name) for name in "AB"])
    grants = [grant for _, grant in scene.grants]
    assert until_s(scene.at(0, throttled(grants[0], 60_000))) == 60
    assert c.only(e.CooldownSet, scene.at(1, throttled(grants[1], 1_000))) == []
    scene.at(59.999)
    assert len(scene.grants) == 2
    scene.at(60)
    assert len(scene.grants) == 4
