"""One attempt: how soon it may be sent, and what is reported of it."""

import pytest

from evenhand import NotSent, Outcome, Result
from schemas import events as e
from schemas import inputs as i
from tests.support.member import Life, names


def test_it_is_too_late_to_send_after_the_span_from_the_start_request() -> None:
    life = Life()
    grant = life.grant(send_within_ms=200)
    life.hear(grant)
    life.now_ms += 150
    (step,) = life.hear(life.accepted(grant))
    life.now_ms += 50
    step.attempt.sending()
    assert step.attempt.send_within_s == 0
    life.now_ms += 1
    with pytest.raises(NotSent):
        step.attempt.sending()
    assert step.attempt.ended(NotSent()).outcome == "not_sent"


def test_the_send_delay_is_reported_at_once_if_the_grant_wants_it() -> None:
    life = Life()
    attempt = life.run(report_send=True)
    life.now_ms += 7
    attempt.sent()
    life.now_ms += 5
    attempt.sent()
    (report,) = life.reported
    assert isinstance(report, i.SendReported)
    assert report.send_delay_ms == 7
    assert attempt.ended(None).send_delay_ms is None


def test_else_the_send_delay_comes_with_the_result() -> None:
    life = Life()
    attempt = life.run(report_send=False)
    life.now_ms += 7
    attempt.sent()
    assert life.reported == []
    assert attempt.ended(None).send_delay_ms == 7


@pytest.mark.parametrize(
    ("how", "outcome", "error"),
    [
        (None, "success", None),
        (Result(), "success", None),
        (Result(outcome=Outcome.POLICY_DENIED, error="no"), "policy_denied", "no"),
        (LookupError("secret"), "terminal", "LookupError"),
        (NotSent(), "not_sent", None),
    ],
)
def test_how_it_ended_decides_the_outcome(
    how: Result | Exception | None, outcome: str, error: str | None
) -> None:
    told = Life().run().ended(how)
    assert (told.outcome, told.error) == (outcome, error)


def test_not_sent_is_not_believed_once_something_was_sent() -> None:
    attempt = Life().run()
    attempt.sent()
    assert attempt.ended(NotSent()).outcome == "terminal"


def test_usage_goes_with_the_result_and_is_never_negative() -> None:
    attempt = Life().run()
    attempt.usage(prompt_tokens=3, output_tokens=4)
    told = attempt.ended(None)
    assert (told.prompt_tokens, told.output_tokens) == (3, 4)
    with pytest.raises(ValueError, match="0 or more"):
        attempt.usage(prompt_tokens=-1, output_tokens=0)


def test_every_word_of_an_attempt_names_it_as_the_grant_did() -> None:
    life = Life()
    grant = life.grant(operation=7, epoch=3, report_send=True)
    (start,) = life.hear(grant)
    (run,) = life.hear(life.accepted(grant))
    run.attempt.sent()
    for word in (start, life.reported[0], run.attempt.ended(None)):
        assert names(word) == names(grant)


def test_the_provider_key_is_the_same_in_every_attempt() -> None:
    life = Life(places=2)
    first, second = life.run(epoch=1), life.run(epoch=2)
    assert first.provider_key == second.provider_key
    assert first.attempt != second.attempt


def test_a_handler_sees_that_its_end_is_wanted() -> None:
    life = Life()
    attempt = life.run()
    assert not attempt.cancel_requested
    life.hear(e.CancelSignalled(**names(attempt.grant), cause="user"))
    assert attempt.cancel_requested


def test_a_reference_that_no_cell_keeps_is_refused_here() -> None:
    with pytest.raises(ValueError, match="2048"):
        Result(result_ref="x" * 2049)
