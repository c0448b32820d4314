"""Deliveries to members over HTTP, and answers to inputs: in order, once, and how far back."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from projections.answers import Answers
from projections.deliveries import Deliveries, DeliveriesGone
from projections.live import LiveViews
from projections.recall import RECALL_MAX, recalled
from projections.reflected import TakenInput
from projections.rocks import RocksViews
from schemas.codec import decode_entry
from schemas.ids import CellId, MemberId, member_of_key
from schemas.journal import Chain, Position
from tests.support.kafka import until
from tests.support.told import Told, ToldJournal, began, configured
from tests.support.words import e

CELL = CellId("main")
ME, OTHER = member_of_key("a1", "me"), member_of_key("a1", "other")
NOWHERE = Position(CELL, 0, -1, 0)


def returned(member: str, reason: str) -> Any:
    return e.MemberSlotReturned(member=member, member_epoch="e", reason=reason)


def entries(journal: ToldJournal, first: int = 0) -> list[tuple[int, Any]]:
    return [(r.offset, decode_entry(r.value)) for r in journal.records[first:]]


def told(*reasons: str, member: str = ME, kept_max: int = 100) -> tuple[Deliveries, ToldJournal]:
    journal = ToldJournal()
    for reason in reasons:
        journal.tell(returned(member, reason), returned(OTHER, f"other's {reason}"))
    deliveries = Deliveries(CELL, NOWHERE, kept_max=kept_max)
    deliveries.hear(entries(journal))
    return deliveries, journal


def reasons(found: Any) -> list[str]:
    return [one.event.reason for one in found.items]


def read(deliveries: Deliveries, after: Position | None, wait_ms: int = 0) -> Any:
    return asyncio.run(deliveries.read(ME, after, wait_ms))


def test_a_member_hears_its_own_in_order_and_goes_on_where_it_was() -> None:
    deliveries, _ = told("1", "2", "3")
    found = read(deliveries, NOWHERE)
    assert reasons(found) == ["1", "2", "3"]
    assert reasons(read(deliveries, found.items[0].position)) == ["2", "3"]
    assert reasons(read(deliveries, found.next)) == []


def test_without_a_position_it_begins_now() -> None:
    deliveries, journal = told("before")
    now = read(deliveries, None)
    assert now.items == []
    deliveries.hear([(journal.tell(returned(ME, "after")), entries(journal)[-1][1])])
    assert reasons(read(deliveries, now.next)) == ["after"]


def test_who_is_ahead_of_this_process_misses_nothing_and_does_not_go_back() -> None:
    deliveries, _ = told("1")
    ahead = Position(CELL, 1, 100, 0)
    assert read(deliveries, ahead).next == ahead


def test_what_is_not_kept_is_said_to_be_gone_and_the_rest_is_kept() -> None:
    deliveries, _ = told("1", "2", "3", kept_max=4)
    with pytest.raises(DeliveriesGone, match="kept from main:1:0:1 on"):
        read(deliveries, NOWHERE)
    assert reasons(read(deliveries, Position(CELL, 1, 0, 1))) == ["2", "3"]


def test_a_member_that_is_linked_to_the_topics_takes_no_room() -> None:
    deliveries, _ = told("1", "2", "3", member="m1", kept_max=3)
    assert asyncio.run(deliveries.read(MemberId("m1"), NOWHERE, 0)).items == []


def test_a_grant_that_names_nobody_is_heard_by_all_members_of_its_pool() -> None:
    journal = ToldJournal()
    slot = {"pool": "p", "places": 1, "join_by_ms": 0, "member_epoch": "e"}
    journal.tell(e.MemberSlotGranted(member=ME, **slot))
    journal.tell(Told(member="").granted())
    journal.tell(e.MemberLost(member=OTHER, member_epoch="e"), Told("k2", member="").granted())
    deliveries = Deliveries(CELL, NOWHERE, pools={OTHER: "p", "m1": "p"})
    deliveries.hear(entries(journal))

    def heard(member: str) -> list[str]:
        found = asyncio.run(deliveries.read(MemberId(member), NOWHERE, 0))
        return [type(one.event).__name__ for one in found.items]

    assert heard(ME) == ["MemberSlotGranted", "GrantIssued", "GrantIssued"]
    assert heard(OTHER) == ["GrantIssued", "MemberLost"]
    assert heard("m1") == []


def test_a_reader_that_waits_is_woken_by_what_comes() -> None:
    deliveries, journal = told("1")

    async def waits() -> Any:
        begin = (await deliveries.read(ME, None, 0)).next
        waiting = asyncio.create_task(deliveries.read(ME, begin, 10_000))
        await asyncio.sleep(0)
        offset = journal.tell(returned(OTHER, "not mine"))
        await asyncio.to_thread(deliveries.hear, entries(journal, offset))
        offset = journal.tell(returned(ME, "mine"))
        await asyncio.to_thread(deliveries.hear, entries(journal, offset))
        return await waiting

    assert reasons(asyncio.run(waits())) == ["mine"]


def test_a_wait_that_ends_moves_the_place_on() -> None:
    deliveries, journal = told("1")
    begin = read(deliveries, None).next
    offset = journal.tell(returned(OTHER, "not mine"))
    deliveries.hear(entries(journal, offset))
    assert read(deliveries, begin, wait_ms=1).next == Position(CELL, 1, offset, 0)


def test_an_input_is_answered_with_what_it_caused_and_a_repeat_with_nothing() -> None:
    journal = ToldJournal()
    journal.tell(
        (2, returned(ME, "third")),
        (0, returned(ME, "first")),
        (-2, returned(ME, "dispatch")),
        (0, returned(ME, "first too")),
        inputs=[(0, 0, 2), (3, 1, 2)],
    )
    answers = Answers(CELL)
    answers.hear(entries(journal))

    def said(*taken: int) -> list[str] | None:
        found = answers.to(TakenInput(*taken))
        return None if found is None else [one.event.reason for one in found]

    assert said(0, 0, 0) == ["first", "first too"]
    assert said(0, 0, 1) == []
    assert said(3, 1, 0) == ["third"]
    assert said(3, 1, 2) is None
    assert said(0, 1, 0) is None


def test_answers_are_kept_up_to_a_bound_of_bytes() -> None:
    journal = ToldJournal()
    for number in range(3):
        journal.tell((0, returned(ME, str(number))), inputs=[(0, 0, 1)])
    size = len(entries(journal)[0][1].events[0].body)
    answers = Answers(CELL, kept_bytes_max=2 * size)
    answers.hear(entries(journal))
    assert answers.to(TakenInput(0, 0, 0)) is None
    assert answers.to(TakenInput(0, 0, 1)) is not None


def test_a_process_that_has_just_started_recalls_what_its_rows_end_with(tmp_path: Path) -> None:
    journal = ToldJournal()
    journal.tell(began(), *configured())
    journal.tell((0, Told().admitted()), inputs=[(0, 0, 1)])
    journal.tell(returned(ME, "1"))
    first = follow(journal, tmp_path)
    heard = asyncio.run(first.deliveries(ME, Position(CELL, 1, 1, 0), 0))
    journal.tell(returned(ME, "2"))
    first.close()
    again = follow(journal, tmp_path)
    try:
        found = asyncio.run(again.deliveries(ME, Position(CELL, 1, 1, 0), 0))
        assert reasons(heard) == ["1"]
        assert reasons(found) == ["1", "2"]
    finally:
        again.close()


def follow(journal: ToldJournal, path: Path) -> LiveViews:
    views = LiveViews(
        cell=CELL, entries=journal, store=RocksViews(path / "views"), halted=lambda: None
    )
    views.start()
    until(lambda: views.progress().offset == len(journal.records), "the end to be reflected")
    return views


def test_only_accepted_entries_are_recalled_and_only_the_newest() -> None:
    journal, chain = ToldJournal(), Chain()
    for number in range(RECALL_MAX + 9):
        journal.tell(returned(ME, str(number)))
    journal.tell(returned(ME, "noise"), previous=3)
    journal.append(b"a stranger's")
    journal.take_over()
    accepted = [
        offset for offset, entry in entries(journal) if entry and chain.accept(offset, entry)
    ]
    assert chain.head is not None
    found = recalled(journal, chain.head)
    assert [offset for offset, _ in found] == accepted[-(RECALL_MAX - 2) :]
