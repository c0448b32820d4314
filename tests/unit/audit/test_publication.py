"""Public topics that differ from the journal, and calls that nobody allowed."""

import pytest

from evenhand.audit.logs import Record
from evenhand.audit.provider import RecordUnreadable
from schemas import codec
from schemas.entry import Entry
from schemas.topics import Topic
from tests.support.history import History
from tests.support.logs import PARTITIONS, partition_of
from tests.support.plants import Plant, Plants, judge, started
from tests.support.words import e

plants = Plants()


# -- publication -----------------------------------------------------------------------------------


def decisions(history: History) -> list[Record]:
    place = (Topic.DECISIONS, partition_of(b"t", PARTITIONS))
    return history.logs.records[place]


@plants.breaks("publication")
def a_copy_is_missing_in_the_middle(history: History) -> int:
    history.submit("a")
    offset = history.offset
    del decisions(history)[-1]
    history.submit("b")
    return offset


@plants.breaks("publication")
def a_copy_said_to_be_out_is_missing(history: History) -> int:
    history.submit("a")
    offset = history.offset
    del decisions(history)[-1]
    history.append([], [])
    return offset


@plants.breaks("publication")
def a_copy_has_other_bytes(history: History) -> int:
    operation = history.submit("a")
    other = e.OperationUnparked(tenant="t", operation=operation)
    decisions(history)[-1] = decisions(history)[-1]._replace(value=codec.encode(other))
    return history.offset


@plants.breaks("publication")
def a_copy_has_another_key(history: History) -> int:
    history.submit("a")
    decisions(history)[-1] = decisions(history)[-1]._replace(key=b"x")
    return history.offset


@plants.breaks("publication")
def copies_of_a_refused_entry_are_public(history: History) -> int:
    word = history.submission("a")
    offset = history.append([word], [history.admission(word)])
    loser = history.logs.records[Topic.JOURNAL, 0][-1]
    entry = codec.decode_as(Entry, loser.value or b"")
    assert history.head is not None
    history.logs.append(Topic.JOURNAL, 0, None, loser.value or b"")
    history.logs.publish(entry, offset + 1)
    history.submit("b")
    return offset + 1


@plants.breaks("publication")
def a_stranger_writes_on_a_public_topic(history: History) -> int:
    place = partition_of(b"t", PARTITIONS)
    history.logs.append(Topic.DECISIONS, place, b"t", b"?")
    history.submit("a")
    return history.offset


@plants.cases()
def test_a_planted_defect_is_named_at_its_position(check: str, plant: Plant) -> None:
    judge(check, plant)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('{{"idempotency_key": "{key}"}}', 0),
        ('{{"idempotency_key": "{key}"}}\n{{"idempotency_key": "{key}"}}', 1),
        ('{{"idempotency_key": "nobody"}}', 1),
        ('{{"idempotency_key": "{key}", "over": ["tokens"]}}', 1),
    ],
)
def test_the_provider_saw_only_calls_whose_start_was_accepted(line: str, found: int) -> None:
    history = History()
    operation = started(history)
    history.result(operation)
    key = f"{operation.hex()}-{history.grants[operation].incarnation}"
    findings = history.audit(provider_record=line.format(key=key).splitlines())
    assert findings.found == found
    assert {finding.check for finding in findings.findings} <= {"provider"}


def test_a_call_reported_as_not_sent_is_no_call() -> None:
    history = History()
    operation = started(history)
    history.not_sent(operation)
    key = f"{operation.hex()}-{history.grants[operation].incarnation}"
    findings = history.audit(provider_record=[f'{{"idempotency_key": "{key}"}}'])
    assert [finding.check for finding in findings.findings] == ["provider"]


@pytest.mark.parametrize("line", ["not json", "[]", ""])
def test_a_record_that_cannot_be_read_is_told_by_its_line(line: str) -> None:
    with pytest.raises(RecordUnreadable, match="line 2"):
        History().audit(provider_record=['{"idempotency_key": ""}', line])
