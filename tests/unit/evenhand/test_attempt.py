"""One attempt: how soon it may be sent, and what is reported of it."""

from datetime import UTC, datetime
from typing import Any

import pytest

from evenhand import NotSent, Outcome, Result, errors
from schemas import events as e
from schemas import inputs as i
from tests.support.member import Life, ended, names


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
    assert ended(step.attempt, NotSent()).outcome == "not_sent"


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
    assert ended(attempt, None).send_delay_ms is None


def test_else_the_send_delay_comes_with_the_result() -> None:
    life = Life()
    attempt = life.run(report_send=False)
    life.now_ms += 7
    attempt.sent()
    assert life.reported == []
    assert ended(attempt, None).send_delay_ms == 7


@pytest.mark.parametrize(
    ("how", "outcome", "error"),
    [
        (None, "success", None),
        (Result(), "success", None),
        (Result(outcome=Outcome.POLICY_DENIED, error="no"), "policy_denied", "no"),
        (LookupError("secret"), "unknown", "LookupError"),
        (NotSent(), "not_sent", None),
    ],
)
def test_how_it_ended_decides_the_outcome(
    how: Result | Exception | None, outcome: str, error: str | None
) -> None:
    told = ended(Life().run(), how)
    assert (told.outcome, told.error) == (outcome, error)


@pytest.mark.parametrize(
    "how", [NotSent(), ConnectionRefusedError(), Result(outcome=Outcome.NOT_SENT)]
)
def test_not_sent_is_not_believed_once_something_was_sent(how: Result | Exception) -> None:
    attempt = Life().run()
    attempt.sent()
    assert ended(attempt, how).outcome == "unknown"


def test_usage_shows_that_the_call_went_out() -> None:
    attempt = Life().run()
    attempt.usage(prompt_tokens=3, output_tokens=4)
    assert ended(attempt, ConnectionRefusedError()).outcome == "unknown"


@pytest.mark.parametrize(
    ("told", "hint_ms"),
    [
        ({}, None),
        ({"after_s": 0.0}, 0),
        ({"after_s": 4.321}, 4321),
        ({"after_s": 0.0001}, 1),
        ({"after_s": -3.0}, 0),
        ({"until": datetime(2026, 1, 1, tzinfo=UTC)}, 0),
    ],
)
@pytest.mark.parametrize("how", [None, Result(), OSError()])
def test_a_throttled_attempt_ends_so_however_its_handler_ends(
    how: Result | Exception | None, told: dict[str, Any], hint_ms: int | None
) -> None:
    attempt = Life().run()
    attempt.throttled(**told)
    word = ended(attempt, how)
    assert (word.outcome, word.retry_after_ms) == ("throttled", hint_ms)


def test_a_result_may_carry_what_the_provider_said_to_wait() -> None:
    how = Result(outcome=Outcome.QUOTA_EXHAUSTED, retry_after_ms=86_400_000)
    word = ended(Life().run(), how)
    assert (word.outcome, word.retry_after_ms) == ("quota_exhausted", 86_400_000)
    with pytest.raises(ValueError, match="0 ms or more"):
        Result(retry_after_ms=-1)


def test_usage_that_is_known_only_after_the_end_is_told_apart() -> None:
    life = Life()
    attempt = life.run(operation=7, epoch=3)
    ended(attempt, TimeoutError())
    attempt.usage(prompt_tokens=3, output_tokens=4)
    (word,) = life.reported
    assert isinstance(word, i.UsageReported)
    assert names(word) == names(attempt.grant)
    assert (word.unit, word.prompt_tokens, word.output_tokens) == ("tokens", 3, 4)
    assert word.evidence == f"{attempt.provider_key}-3"


def test_checkpoints_have_contiguous_numbers_from_the_last_recorded_one() -> None:
    life = Life()
    attempt = life.run(checkpoint=4, checkpoint_ref="s3://4")
    assert attempt.resumed_from == (4, "s3://4")
    for number in (5, 6):
        answer = attempt.report_checkpoint(f"s3://{number}", 10, 1)
        word = life.reported[-1]
        assert isinstance(word, i.CheckpointReported)
        assert (word.number, word.state_ref) == (number, f"s3://{number}")
        assert (word.context_bytes, word.artifacts) == (10, 1)
        assert not answer.done()
        life.hear(e.CheckpointRecorded(**names(attempt.grant), number=number))
        assert answer.result(0) is None


def test_a_refused_checkpoint_is_raised_by_the_class_of_its_code_and_counts_not() -> None:
    life = Life()
    attempt = life.run()
    assert attempt.resumed_from is None
    answer = attempt.report_checkpoint("s3://1", None, None)
    life.hear(e.CheckpointRefused(**names(attempt.grant), number=1, code="context-too-large"))
    with pytest.raises(errors.ContextTooLarge):
        answer.result(0)
    attempt.report_checkpoint("s3://smaller", None, None)
    assert life.reported[-1].number == 1  # type: ignore[union-attr]


def test_a_checkpoint_that_is_recorded_late_is_followed_by_the_next_number() -> None:
    life = Life()
    attempt = life.run()
    attempt.report_checkpoint("s3://1", None, None)
    life.hear(e.CheckpointRecorded(**names(attempt.grant), number=1))
    attempt.report_checkpoint("s3://2", None, None)
    life.hear(e.CheckpointRecorded(**names(attempt.grant), number=1))
    assert life.reported[-1].number == 2  # type: ignore[union-attr]


def test_a_run_counts_its_turns_and_names_each_by_its_epoch() -> None:
    attempt = Life().run(operation=7, epoch=2, turns_max=2)
    keys = [attempt.next_turn() for _ in range(2)]
    assert keys == [f"{attempt.operation}:1:2:{number}" for number in (1, 2)]
    assert attempt.turns_left == 0
    with pytest.raises(errors.TurnsExhausted):
        attempt.next_turn()


def test_what_is_no_run_has_no_turns() -> None:
    with pytest.raises(errors.TurnsExhausted):
        Life().run().next_turn()


def test_only_admitted_tools_may_be_used() -> None:
    attempt = Life().run(tools=("search",))
    attempt.tool("search")
    with pytest.raises(errors.ToolNotAllowed, match="'shell'"):
        attempt.tool("shell")


@pytest.mark.parametrize("expired", [True, False])
def test_a_handler_sees_that_its_lease_has_ended_and_still_tells_its_result(
    expired: bool,
) -> None:
    life = Life()
    attempt = life.run()
    assert not attempt.lease_lost
    grant = attempt.grant
    if expired:
        life.hear(e.LeaseExpired(**names(grant), started=True))
    else:
        life.hear(
            e.RenewRefused(
                member=grant.member,
                member_epoch=grant.member_epoch,
                operation=grant.operation,
                epoch=grant.epoch,
                code="lease-not-held",
            )
        )
    assert attempt.lease_lost
    assert ended(attempt, Result()).outcome == "success"


def test_usage_goes_with_the_result_and_is_never_negative() -> None:
    attempt = Life().run()
    attempt.usage(prompt_tokens=3, output_tokens=4)
    told = ended(attempt, None)
    assert (told.prompt_tokens, told.output_tokens) == (3, 4)
    with pytest.raises(ValueError, match="0 or more"):
        attempt.usage(prompt_tokens=-1, output_tokens=0)


def test_every_word_of_an_attempt_names_it_as_the_grant_did() -> None:
    life = Life()
    grant = life.grant(operation=7, epoch=3, report_send=True)
    (start,) = life.hear(grant)
    (run,) = life.hear(life.accepted(grant))
    run.attempt.sent()
    for word in (start, life.reported[0], ended(run.attempt, None)):
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
