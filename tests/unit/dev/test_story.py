"""A play in miniature: the figures that its journal and the provider's record must give."""

from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from evenhand.dev.chart import picture
from evenhand.dev.judge import Limits
from evenhand.dev.story import Recorded, Span, Story, shares_over_time
from evenhand.dev.summary import Call, summarize, used
from schemas import events as e

LIMITS = Limits(requests=10, tokens=1_000, slots=2, window_ms=1_000)
VERDICT = {"overshoot_calls": 0, "overshoot_tokens": 0}


def _made(kind: type, tenant: str, number: int, **fields: Any) -> Any:
    """An event with what matters here; everything else empty."""
    blank = SimpleNamespace(**dict.fromkeys(kind.__slots__))  # type: ignore[attr-defined]
    values = vars(blank) | {"tenant": tenant, "operation": bytes([number] * 16)} | fields
    return kind(**values)


def _at(time_ms: int, *events: Any, epoch: int = 2) -> Recorded:
    return Recorded(time_ms, epoch, events)


def _story() -> Story:
    return Story({"a": 2, "b": 1}).fold(
        [
            _at(0, epoch=2),
            _at(1_000, _made(e.OperationAdmitted, "a", 1), _made(e.OperationAdmitted, "a", 2)),
            _at(1_200, _made(e.OperationAdmitted, "b", 3), _made(e.OperationAdmitted, "b", 4)),
            _at(1_500, _made(e.GrantIssued, "a", 1), _made(e.StartAccepted, "a", 1)),
            _at(1_700, _made(e.ReservationSettled, "a", 1, cost_ns=60)),
            _at(1_900, _made(e.GrantIssued, "b", 3), _made(e.StartAccepted, "b", 3)),
            _at(2_000, _made(e.ReservationSettled, "b", 3, cost_ns=20)),
            _at(2_900, epoch=3),
            _at(3_000, _made(e.GrantIssued, "a", 2), epoch=3),
            _at(3_100, _made(e.ReservationSettled, "a", 2, cost_ns=50), epoch=3),
            _at(3_200, _made(e.OperationExpired, "b", 4), epoch=3),
        ]
    )


def test_shares_count_what_was_settled_while_all_tenants_were_backlogged() -> None:
    story = _story()
    assert story.backlogged == [Span(1_200, 3_000)]
    assert {n: t.backlogged_cost_ns for n, t in story.tenants.items()} == {"a": 60, "b": 20}


def test_waits_run_from_admission_to_the_first_grant() -> None:
    story = _story()
    assert {n: t.waits_ms for n, t in story.tenants.items()} == {"a": [500, 2_000], "b": [700]}


def test_an_operation_that_was_not_sent_waits_again_and_its_first_wait_stays() -> None:
    story = _story()
    story.fold(
        [
            _at(4_000, _made(e.OperationAdmitted, "a", 9), epoch=3),
            _at(4_100, _made(e.GrantIssued, "a", 9), epoch=3),
            _at(4_200, _made(e.ReservationReleased, "a", 9, reason="not_sent"), epoch=3),
        ]
    )
    assert story.sample(4_300).oldest_ms == {"a": 300, "b": 0}
    story.fold([_at(4_400, _made(e.GrantIssued, "a", 9), epoch=3)])
    assert story.tenants["a"].waits_ms[2:] == [100]


def test_a_takeover_lasts_from_the_last_entry_to_the_first_grant_of_the_next_owner() -> None:
    assert _story().takeovers == [Span(2_000, 3_000)]


def test_the_summary_counts_what_the_topics_and_the_provider_say() -> None:
    summary = summarize(
        _story(),
        submissions=4,
        verdict=VERDICT,
        calls=[],
        limits=LIMITS,
        fifo_waits_ms={"a": [5, 5], "b": [7]},
        audit=[],
    )
    assert (summary.admitted, summary.settled, summary.expired) == (4, 3, 1)
    assert (summary.lost, summary.doubled) == (0, 0)
    assert summary.first_grant_after_kill_ms == 1_000
    assert summary.backlogged_ms == 1_800
    a, b = summary.tenants["a"], summary.tenants["b"]
    assert (a.share, a.entitled, a.fifo_wait_ms_p50) == (0.75, 0.6667, 5)
    assert (b.wait_ms_p50, b.wait_ms_p95) == (700, 700)


def test_a_call_without_an_accepted_start_is_a_finding() -> None:
    stranger = Call(arrived_ns=0, operation="99" * 16, tokens=1, service_ms=1)
    summary = summarize(
        _story(),
        submissions=4,
        verdict=VERDICT,
        calls=[stranger],
        limits=LIMITS,
        fifo_waits_ms={},
        audit=["from the audit"],
    )
    assert len(summary.audit) == 2
    assert "without an accepted start" in summary.audit[1]


@pytest.mark.parametrize(
    ("starts", "refused", "doubled"),
    [
        (2, (True, False), 0),  # refused, and tried again by rule
        (2, (False, False), 1),
        (1, (True, False), 1),  # tried again by nobody's leave
        (1, (True, True), 1),
        (3, (True, True, False), 0),
        (3, (False, True, False), 1),
    ],
)
def test_a_call_is_doubled_if_it_was_executed_twice_or_has_no_start_of_its_own(
    starts: int, refused: tuple[bool, ...], doubled: int
) -> None:
    story = Story({"a": 1})
    story.fold([_at(1_000, *[_made(e.StartAccepted, "a", 1)] * starts)])
    calls = [
        Call(arrived_ns=at, operation="01" * 16, tokens=1, service_ms=1, refused=one)
        for at, one in enumerate(refused)
    ]
    summary = summarize(
        story,
        submissions=1,
        verdict=VERDICT,
        calls=calls,
        limits=LIMITS,
        fifo_waits_ms={},
        audit=[],
    )
    assert summary.doubled == doubled


def test_what_was_used_is_the_provider_s_windows_laid_over_the_backlogged_time() -> None:
    first = Call(arrived_ns=9_000_000, operation="01" * 16, tokens=500, service_ms=900)
    second = Call(arrived_ns=409_000_000, operation="03" * 16, tokens=250, service_ms=180)
    # Backlogged 1,200 to 3,000; windows 1,500 to 2,500 and 1,900 to 2,900.
    figures = used(_story(), [first, second], LIMITS)
    assert figures["tokens"] == pytest.approx((500 + 250) / (1_000 * 1.8))
    assert figures["requests"] == pytest.approx(2 / (10 * 1.8))
    assert figures["slots"] == pytest.approx((900 + 180) / (2 * 1_800))


def test_shares_over_time_look_back_one_window() -> None:
    points = dict(shares_over_time(_story(), window_ms=1_300))
    assert points[1_900] == {"a": 1.0, "b": 0.0}
    assert points[2_900] == {"a": 0.75, "b": 0.25}


def test_the_picture_is_well_formed_and_has_a_line_for_each_tenant_in_both_panels() -> None:
    drawn = ET.fromstring(picture(_story(), window_ms=1_000))
    names = [node.text for node in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert names.count("a") == names.count("b") == 2
    assert any("killed" in (name or "") for name in names)
