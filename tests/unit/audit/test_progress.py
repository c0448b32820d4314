"""Defects in checkpoints, turns and entitlement: each is named; true stories are clean."""

from schemas.ids import OperationId
from tests.support.history import History
from tests.support.plants import Plant, Plants, judge, started
from tests.support.trouble import by_time, checkpoint
from tests.support.words import e, i

plants = Plants()


# -- progress --------------------------------------------------------------------------------------


@plants.breaks("progress")
def a_checkpoint_is_left_out(history: History) -> int:
    return checkpoint(history, started(history), 2)


@plants.breaks("progress")
def a_checkpoint_by_another_member(history: History) -> int:
    return checkpoint(history, started(history), 1, member="n")


@plants.breaks("progress")
def a_checkpoint_other_than_reported(history: History) -> int:
    return checkpoint(history, started(history), 1, state_ref="other")


@plants.breaks("progress")
def a_context_larger_than_allowed(history: History) -> int:
    operation = started(history)
    told = {"number": 1, "context_bytes": 64 * 1024 * 1024 + 1}
    asked = i.CheckpointReported(**history.named(operation), **told)
    made = e.CheckpointRecorded(**history.named(operation), **told)
    return history.append([asked], [made])


@plants.breaks("grants")
def a_grant_forgets_the_last_checkpoint(history: History) -> int:
    operation = started(history)
    checkpoint(history, operation, 1)
    history.not_sent(operation)
    return history.grant(operation)


def run(history: History, turns: int = 1) -> OperationId:
    """A started run of tenant t, which reserves nothing."""
    operation = history.submit("run", turns_max=turns, prompt_tokens=0, output_tokens_max=0)
    history.grant(operation, requests=0, slots=0, tokens=0)
    history.start(operation)
    return operation


@plants.breaks("grants")
def a_run_reserves_a_slot(history: History) -> int:
    operation = history.submit("run", turns_max=1, prompt_tokens=0, output_tokens_max=0)
    return history.grant(operation)


@plants.breaks("progress")
def one_turn_too_many(history: History) -> int:
    operation = run(history)
    history.submit("first", parent=operation)
    word = history.submission("second", parent=operation)
    return history.append([word], [history.admission(word)])


@plants.breaks("progress")
def a_turn_of_what_is_no_run(history: History) -> int:
    word = history.submission("b", parent=started(history))
    return history.append([word], [history.admission(word)])


@plants.breaks("progress")
def a_turn_after_its_run(history: History) -> int:
    operation = run(history)
    history.result(operation)
    word = history.submission("b", parent=operation)
    return history.append([word], [history.admission(word)])


# -- entitlement -----------------------------------------------------------------------------------


@plants.breaks("starts")
def the_entitlement_is_used_up_twice(history: History) -> int:
    operation = started(history)
    history.not_sent(operation)
    history.grant(operation)
    return history.start(operation, commits_entitlement=True)


@plants.breaks("starts")
def the_entitlement_is_not_used_up(history: History) -> int:
    operation = history.submit("a")
    history.grant(operation)
    return history.start(operation, commits_entitlement=False)


@plants.cases()
def test_a_planted_defect_is_named_at_its_position(check: str, plant: Plant) -> None:
    judge(check, plant)


def test_a_run_goes_on_from_its_checkpoint_and_its_turns_are_operations() -> None:
    history = History()
    operation = run(history, turns=2)
    history.run(history.submit("turn 1", parent=operation))
    checkpoint(history, operation, 1)
    asked = i.CheckpointReported(**history.named(operation), number=1, state_ref="s1")
    history.append([asked], [])
    history.not_sent(operation)
    free = {"requests": 0, "slots": 0, "tokens": 0}
    history.grant(operation, **free, checkpoint=1, checkpoint_ref="s1")
    history.start(operation)
    history.run(history.submit("turn 2", parent=operation))
    history.result(operation)
    assert history.audit(strict=True).findings == ()


def test_a_run_is_asked_to_end_when_its_time_is_over() -> None:
    history = History()
    operation = history.submit("a", runtime_ms=50_000)
    history.grant(operation)
    history.start(operation)
    history.wait(49_999)
    by_time(history, e.CancelSignalled(**history.named(operation), cause="runtime-limit"))
    history.result(operation, "terminal")
    assert history.audit(strict=True).findings == ()
