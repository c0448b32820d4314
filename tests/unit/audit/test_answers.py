"""Defects in entries, answers and lives: each is named at its position."""

from schemas.entry import InputRun
from schemas.topics import Topic
from tests.support.history import History
from tests.support.logs import PARTITIONS, partition_of
from tests.support.plants import Plant, Plants, judge, started
from tests.support.words import e, i

plants = Plants()


# -- chain -----------------------------------------------------------------------------------------


@plants.breaks("chain")
def time_goes_back(history: History) -> int:
    return history.append([], [], time_ms=history.now_ms - 5)


@plants.breaks("chain")
def published_falls(history: History) -> int:
    return history.append([], [], published=0)


@plants.breaks("chain")
def published_names_the_future(history: History) -> int:
    return history.append([], [], published=history.offset + 1)


@plants.breaks("chain")
def a_takeover_decides(history: History) -> int:
    operation = history.submit("a")
    assert history.head is not None
    published = history.head.published
    event = e.OperationCancelled(tenant="t", operation=operation, reason="")
    history.now_ms -= 1
    return history.append([], [event], epoch=2, takeover=True, published=published)


@plants.breaks("chain")
def a_newer_program_wrote_an_entry(history: History) -> int:
    return history.logs.append(Topic.JOURNAL, 0, None, b"\xc3\x01" + bytes(12))


@plants.breaks("chain")
def the_generation_changes(history: History) -> int:
    return history.append([], [], generation=2)


@plants.breaks("chain")
def an_input_stands_among_the_events(history: History) -> int:
    return history.append([], [history.submission("a")], publish=False)


# -- answers ---------------------------------------------------------------------------------------


@plants.breaks("answers")
def a_submission_has_no_answer(history: History) -> int:
    return history.append([history.submission("a")], [])


@plants.breaks("answers")
def a_submission_has_two_answers(history: History) -> int:
    word = history.submission("a")
    return history.append([word], [history.rejection(word), history.rejection(word)])


@plants.breaks("answers")
def an_answer_is_about_another_operation(history: History) -> int:
    word, other = history.submission("a"), history.submission("b")
    return history.append([word], [history.rejection(other)])


@plants.breaks("answers")
def an_answer_has_no_cause(history: History) -> int:
    return history.append([], [history.rejection(history.submission("a"))])


@plants.breaks("answers")
def a_key_is_admitted_twice(history: History) -> int:
    history.run(history.submit("a"))
    word = history.submission("a")
    return history.append([word], [history.admission(word)])


@plants.breaks("answers")
def a_refused_key_is_admitted(history: History) -> int:
    word = history.submission("a")
    digest = history.admission(word).payload_digest
    history.append([word], [history.rejection(word, binds_key=True, payload_digest=digest)])
    return history.append([word], [history.admission(word)])


@plants.breaks("answers")
def another_digest_passes_as_a_duplicate(history: History) -> int:
    named = {"tenant": "t", "operation": history.submit("a")}
    word = history.submission("a", prompt_tokens=11)
    return history.append([word], [e.DuplicateObserved(**named, state="waiting")])


@plants.breaks("answers")
def a_repeat_is_called_a_conflict(history: History) -> int:
    named = {"tenant": "t", "operation": history.submit("a")}
    return history.append([history.submission("a")], [e.SubmissionConflicted(**named)])


@plants.breaks("answers")
def an_unknown_key_is_called_a_duplicate(history: History) -> int:
    word = history.submission("a")
    operation = history.rejection(word).operation
    event = e.DuplicateObserved(tenant="t", operation=operation, state="waiting")
    return history.append([word], [event])


@plants.breaks("answers")
def less_is_admitted_than_was_asked(history: History) -> int:
    word = history.submission("a")
    return history.append([word], [history.admission(word, prompt_tokens=9)])


@plants.breaks("answers")
def another_payload_is_admitted(history: History) -> int:
    word = history.submission("a")
    return history.append([word], [history.admission(word, payload_digest=bytes(32))])


@plants.breaks("answers")
def a_readable_submission_is_quarantined(history: History) -> int:
    return history.quarantine(history.logs.ask(history.submission("a")))


@plants.breaks("answers")
def an_unreadable_submission_is_answered(history: History) -> int:
    return history.append([history.logs.ask(b"?")], [history.rejection(history.submission("a"))])


@plants.breaks("answers")
def an_unreadable_result_is_passed_over(history: History) -> int:
    operation = started(history)
    word = i.ResultReported(**history.named(operation), outcome="perhaps")
    return history.append([word], [])


@plants.breaks("answers")
def an_input_is_taken_twice(history: History) -> int:
    history.submit("a")
    run = InputRun(topic=0, partition=partition_of(b"t", PARTITIONS), first=0, next=1)
    return history.append([], [], inputs=(run,))


@plants.breaks("answers")
def an_input_is_passed_over(history: History) -> int:
    history.logs.ask(history.submission("a"))
    word = history.submission("b")
    return history.append([word], [history.admission(word)])


# -- lives -----------------------------------------------------------------------------------------


@plants.breaks("lives")
def a_running_operation_is_granted_again(history: History) -> int:
    operation = started(history)
    return history.grant(operation)


@plants.breaks("lives")
def a_started_operation_is_expired(history: History) -> int:
    operation = started(history)
    return history.append(
        [], [e.OperationExpired(tenant="t", operation=operation, reason="not_before")]
    )


@plants.breaks("lives")
def work_expires_before_its_deadline(history: History) -> int:
    operation = history.submit("a")
    return history.append(
        [], [e.OperationExpired(tenant="t", operation=operation, reason="deadline")]
    )


@plants.breaks("lives")
def what_was_never_admitted_is_cancelled(history: History) -> int:
    return history.append([], [e.OperationCancelled(tenant="t", operation=bytes(16), reason="")])


@plants.breaks("lives")
def another_tenant_parks_it(history: History) -> int:
    operation = history.submit("a")
    return history.append([], [e.OperationParked(tenant="u", operation=operation, reason="x")])


@plants.breaks("lives")
def a_sequence_is_given_twice(history: History) -> int:
    history.submit("a")
    word = history.submission("b")
    return history.append([word], [history.admission(word, sequence=1)])


@plants.cases()
def test_a_planted_defect_is_named_at_its_position(check: str, plant: Plant) -> None:
    judge(check, plant)
