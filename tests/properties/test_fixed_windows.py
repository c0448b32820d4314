"""Fixed windows of known resets: every part that computes them finds the same ones."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from evenhand.audit.fixed import Fixed
from projections.views import budget
from schemas.inputs import DimensionConfig
from streams.core.dimensions import contradictions
from streams.core.exits import exit_ms
from tests.contract.reference_windows import leaves_ms
from tests.support import core as c


@st.composite
def known(draw: st.DrawFn) -> DimensionConfig:
    """A window whose later resets come half a window or more after each other."""
    window_ms = draw(st.integers(1, 40))
    resets = [draw(st.integers(0, 50))]
    for more in draw(st.lists(st.integers(0, 5 * window_ms), max_size=4)):
        resets.append(resets[-1] + -(-window_ms // 2) + more)
    one = c.dimension("tokens", 9, kind="fixed", window_ms=window_ms, reset_ms=resets[0])
    one = replace(one, later_resets_ms=tuple(resets[1:]))
    assert not list(contradictions(one, None))
    return one


def ends(one: DimensionConfig, at_ms: int) -> int:
    return exit_ms(one, latest_ms=at_ms, send_within_ms=9)


@settings(deadline=None)
@given(known())
def test_each_later_reset_is_one_and_no_window_is_half_as_long_again_or_less_than_half(
    one: DimensionConfig,
) -> None:
    assert one.reset_ms is not None
    assert one.window_ms is not None
    found = [int(one.reset_ms)]
    last = max(found[0], *one.later_resets_ms, 0)
    while found[-1] <= last + 2 * one.window_ms:
        found.append(ends(one, found[-1]))
    assert set(one.later_resets_ms) <= set(found)
    assert all(
        one.window_ms <= 2 * (after - before) < 3 * one.window_ms
        for before, after in pairwise(found)
    )
    assert ends(one, found[0] - 1) == found[0]


@settings(deadline=None)
@given(known(), st.integers(0, 50))
def test_core_view_audit_and_reference_find_the_same_end_of_every_window(
    one: DimensionConfig, edge_ms: int
) -> None:
    one = replace(one, reset_uncertainty_ms=edge_ms)
    assert one.reset_ms is not None
    judge = Fixed(one)
    for at_ms in range(one.reset_ms, one.reset_ms + 900):
        leaves = ends(one, at_ms)
        assert budget.exit_ms(one, latest_ms=at_ms, send_within_ms=9) == leaves
        assert leaves_ms(one, at_ms, 9) == leaves
        judge.hold(at_ms, 1)
        judge.arrive(at_ms, at_ms, at_ms, 9)
        assert judge.holds(at_ms, leaves - 1)
        assert not judge.holds(at_ms, leaves)
        judge.drop(at_ms)
