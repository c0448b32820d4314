"""The provider's judge against a count of every window by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.dev.judge import Judge, Limits

MS = 1_000_000
LIMITS = Limits(requests=3, tokens=100, slots=2, window_ms=10)


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(1, 60)), max_size=40))
def test_peaks_are_those_of_every_window_counted_by_hand(steps: list[tuple[int, int]]) -> None:
    judge, calls, now = Judge(LIMITS), [], 0
    for step_ms, tokens in steps:
        now += step_ms * MS
        calls.append((now, tokens))
        judge.arrive(now, tokens=tokens)
        judge.leave()
    windows = [
        [tokens for at, tokens in calls if start <= at <= start + LIMITS.window_ms * MS]
        for start, _ in calls
    ]
    said = judge.verdict()
    assert said.peak_requests == max(map(len, windows), default=0)
    assert said.peak_tokens == max(map(sum, windows), default=0)
    assert said.overshoot_tokens == max(0, said.peak_tokens - LIMITS.tokens)
    assert (said.overshoot_calls > 0) == (said.peak_requests > 3 or said.peak_tokens > 100)


@pytest.mark.parametrize(
    ("instants_ms", "over"),
    [
        ([0, 1, 2], 0),
        ([0, 1, 2, 10], 1),  # both ends of a window count
        ([0, 1, 2, 11], 0),
    ],
)
def test_a_call_over_the_requests_of_a_window_is_counted(instants_ms: list[int], over: int) -> None:
    judge = Judge(LIMITS)
    for at in instants_ms:
        judge.arrive(at * MS, tokens=1)
        judge.leave()
    assert judge.verdict().overshoot_calls == over


def test_overlapping_calls_above_the_slots_are_counted() -> None:
    judge = Judge(LIMITS)
    assert [judge.arrive(0, tokens=1) for _ in range(3)] == [(), (), ("slots",)]
    judge.leave()
    assert judge.verdict().peak_slots == 3
    assert judge.verdict().slots == 2


def test_a_key_that_comes_twice_makes_the_verdict_unclean() -> None:
    judge = Judge(LIMITS)
    for key in ("a", "b"):
        judge.arrive(0, tokens=1, key=key)
        judge.leave()
    assert judge.verdict().clean
    judge.arrive(20 * MS, tokens=1, key="a")
    assert judge.verdict().repeats == 1
    assert not judge.verdict().clean


def test_a_key_that_comes_again_after_a_refusal_is_no_repeat() -> None:
    judge = Judge(LIMITS)
    assert judge.arrive(0, tokens=101, key="a") == ("tokens",)
    judge.leave()
    assert judge.arrive(20 * MS, tokens=1, key="a") == ()
    assert judge.verdict().repeats == 0
