"""Every input is answered, or said nothing new: what is passed over in silence is found."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.history import History
from tests.support.plants import granted, started
from tests.support.trouble import by_time, checkpoint, closing, looked_up, unknown
from tests.support.words import e, i

SOMEBODY = {"author": "o", "reason": "r"}


def of_started(kind: type, **fields: Any) -> Callable[[History], Any]:
    """An input of this kind by the holder of a started attempt."""
    return lambda history: kind(**history.named(started(history)), **fields)


def of_granted(kind: type) -> Callable[[History], Any]:
    """An input of this kind by the holder of a grant."""
    return lambda history: kind(**history.named(granted(history)))


UNANSWERED: dict[str, Callable[[History], Any]] = {
    "a start": of_granted(i.StartRequested),
    "a claim": of_granted(i.ClaimRequested),
    "a result": of_started(i.ResultReported, outcome="success"),
    "a checkpoint": of_started(i.CheckpointReported, number=1),
    "usage": of_started(
        i.UsageReported, unit="tokens", prompt_tokens=1, output_tokens=1, evidence="u"
    ),
    "a heartbeat": lambda _: i.HeartbeatReported(member="m", member_epoch="1"),
    "a join": lambda _: i.JoinRequested(member="n", member_epoch="1", pool="p", places=1),
    "a cancellation": lambda history: i.CancellationRequested(
        tenant="t", operation=history.submit("a")
    ),
    "evidence": lambda history: looked_up(history, unknown(history), "failed"),
    "a verdict": lambda history: i.ReconcileRequested(
        tenant="t", operation=unknown(history), verdict="failed", **SOMEBODY
    ),
    "a retry": lambda history: i.RetryRequested(
        tenant="t", operation=history.submit("a"), start_within_ms=1, **SOMEBODY
    ),
}


@pytest.mark.parametrize("what", UNANSWERED)
def test_what_is_passed_over_in_silence_is_found(what: str) -> None:
    history = History()
    offset = history.append([UNANSWERED[what](history)], [])
    (finding,) = history.audit().findings
    assert (finding.check, finding.position.offset) == ("answers", offset)


def test_an_answer_of_another_kind_is_none() -> None:
    history = History()
    operation = granted(history)
    asked = i.StartRequested(**history.named(operation))
    offset = history.append([asked], [history.claiming(operation)])
    assert [one.position.offset for one in history.audit().findings] == [offset]


def test_answers_out_of_order_are_found() -> None:
    history = History()
    beat = i.HeartbeatReported(member="m", member_epoch="1")
    other = i.HeartbeatReported(member="n", member_epoch="1")
    recorded = e.HeartbeatRecorded(member="m", member_epoch="1")
    refused = e.JoinRefused(member="n", member_epoch="1", code="epoch-superseded")
    offset = history.append([beat, other], [], events=[(1, refused), (0, recorded)])
    assert {one.position.offset for one in history.audit().findings} == {offset}


def test_what_says_nothing_new_needs_no_answer() -> None:
    history = History()
    operation = started(history)
    named = history.named(operation)
    checkpoint(history, operation, 1)
    claim, progress = i.ClaimRequested(**named), {"number": 1, "state_ref": "s1"}
    result = i.ResultReported(**named, outcome="success")
    usage = {"unit": "tokens", "prompt_tokens": 10, "output_tokens": 20, "evidence": "u"}
    history.append([claim], [])
    history.append([i.CheckpointReported(**named, **progress)], [])
    history.append([i.SendReported(**named, send_delay_ms=500)], [])
    history.result(operation)
    history.append([result], [])
    history.append([i.UsageReported(**named, **usage)], [])
    history.append([i.CancellationRequested(tenant="t", operation=operation)], [])
    history.append([looked_up(history, operation, "failed")], [])
    history.append([i.LeaveAnnounced(member="n", member_epoch="1")], [])
    assert history.audit(strict=True).findings == ()


def test_a_member_that_cannot_tell_twice_has_said_it_once() -> None:
    history = History()
    operation = unknown(history)
    again = i.ResultReported(**history.named(operation), outcome="unknown")
    history.append([again], [])
    assert history.audit(strict=True).findings == ()


def test_a_cancellation_ahead_of_its_submission_is_remembered_once() -> None:
    history = History()
    word = history.submission("a")
    operation = history.admission(word).operation
    asked = i.CancellationRequested(tenant="t", operation=operation)
    told = {"tenant": "t", "operation": operation}
    kept = e.CancellationRemembered(**told, reason="", until_ms=history.now_ms + 60_000)
    history.append([asked], [kept])
    history.append([asked], [])
    by_time(history, e.CancellationForgotten(**told))
    assert history.audit(strict=True).findings == ()
    offset = history.append([asked], [])
    assert [one.position.offset for one in history.audit().findings] == [offset]


def test_evidence_of_what_is_closed_needs_no_answer() -> None:
    history = History()
    operation = unknown(history)
    asked = i.ReconcileRequested(tenant="t", operation=operation, verdict="abandoned", **SOMEBODY)
    found = e.OutcomeReconciled(
        **history.named(operation), source="operator", verdict="abandoned", confidence="unknown"
    )
    history.append([asked], [found, closing(history, operation, "abandoned")])
    history.append([i.CancellationRequested(tenant="t", operation=operation)], [])
    assert history.audit(strict=True).findings == ()
