"""The follower: which records count, where it goes on, and when it must stop."""

from pathlib import Path
from typing import Any

import pytest

from projections import catalogue, follower
from projections.follower import Follower, digests, sources_of
from projections.ports import EntryUnreadable, JournalReplaced
from projections.projection import Source
from projections.rocks import RocksViews
from schemas.ids import CellId
from schemas.journal import InputRun
from tests.support.told import START_MS, Told, ToldJournal, began, configured


def followed(journal: ToldJournal, store: RocksViews) -> Follower:
    made = Follower(cell=CellId("main"), entries=journal, store=store, done=lambda _: None)
    while made.step(0):
        pass
    return made


@pytest.fixture
def journal() -> ToldJournal:
    told = ToldJournal()
    told.tell(began(), *configured())
    for n in range(30):
        one = Told(f"k{n}", sequence=n, member=f"m{n % 3}")
        told.tell((0, one.admitted()), inputs=[(0, n % 3, 1)])
        if n % 2:
            told.tell(one.granted(), *one.started(START_MS + 200))
        if n % 4 == 3:
            told.tell(one.sent(START_MS + 9), one.result(), one.settled())
    return told


def all_digests(journal: ToldJournal, path: Path) -> dict[str, str]:
    store = RocksViews(path)
    followed(journal, store)
    found = digests(store)
    store.close()
    return found


def test_deleting_the_views_and_folding_again_gives_the_same_digests(
    journal: ToldJournal, tmp_path: Path
) -> None:
    assert all_digests(journal, tmp_path / "a") == all_digests(journal, tmp_path / "b")


def test_batches_make_no_difference(
    journal: ToldJournal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = all_digests(journal, tmp_path / "a")
    monkeypatch.setattr(follower, "RECORDS_PER_BATCH_MAX", 1)
    assert all_digests(journal, tmp_path / "b") == whole


def test_a_restart_reads_on_from_the_disk(journal: ToldJournal, tmp_path: Path) -> None:
    whole = all_digests(journal, tmp_path / "a")
    rest, journal.records = journal.records[20:], journal.records[:20]
    store = RocksViews(tmp_path / "b")
    followed(journal, store)
    store.close()
    journal.records += rest
    store = RocksViews(tmp_path / "b")
    assert followed(journal, store).reflected.next_offset == len(journal.records)
    assert digests(store) == whole
    store.close()


def test_another_version_of_a_view_rebuilds(
    journal: ToldJournal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = all_digests(journal, tmp_path / "a")
    older = {**catalogue.VERSIONS, "tenant": 0}
    monkeypatch.setattr(follower, "VERSIONS", older)
    store = RocksViews(tmp_path / "b")
    followed(journal, store)
    monkeypatch.undo()
    again = Follower(cell=CellId("main"), entries=journal, store=store, done=lambda _: None)
    assert again.reflected.next_offset == 0
    assert not any(store.scan(b"", b"\xff\xff"))
    while again.step(0):
        pass
    assert digests(store) == whole
    store.close()


@pytest.mark.parametrize(
    "lie",
    [
        {"previous": 0},
        {"height": 7},
        {"epoch": 0},
        {"epoch": 2},
        {"epoch": 3, "takeover": True},
        {"owner": b"somebody-else-16"},
    ],
    ids=str,
)
def test_noise_changes_nothing(journal: ToldJournal, tmp_path: Path, lie: dict[str, Any]) -> None:
    whole = all_digests(journal, tmp_path / "a")
    stranger = Told("stranger", sequence=99)
    journal.tell((0, stranger.admitted()), inputs=[(0, 7, 1)], **lie)
    store = RocksViews(tmp_path / "b")
    made = followed(journal, store)
    assert digests(store) == whole
    assert made.reflected.next_offset == len(journal.records)
    assert made.reflected.position.offset == len(journal.records) - 2
    assert (0, 7) not in made.reflected.taken
    store.close()


@pytest.mark.parametrize("cut", [None, -1], ids=["no word", "half an entry"])
def test_a_strangers_bytes_are_noise(journal: ToldJournal, tmp_path: Path, cut: int | None) -> None:
    whole = all_digests(journal, tmp_path / "a")
    journal.append(b"no word" if cut is None else journal.records[-1].value[:cut])
    store = RocksViews(tmp_path / "b")
    assert followed(journal, store).reflected.next_offset == len(journal.records)
    assert digests(store) == whole
    store.close()


def test_what_has_been_taken_is_known_by_input(journal: ToldJournal, tmp_path: Path) -> None:
    store = RocksViews(tmp_path)
    assert followed(journal, store).reflected.taken == {(0, 0): 10, (0, 1): 10, (0, 2): 10}
    store.close()


def test_an_entry_of_a_newer_program_stops_the_follower(
    journal: ToldJournal, tmp_path: Path
) -> None:
    journal.append(b"\xc3\x01" + b"\x00" * 20)
    store = RocksViews(tmp_path)
    with pytest.raises(EntryUnreadable, match=f"offset {len(journal.records) - 1}"):
        followed(journal, store)
    store.close()


def test_views_of_another_topic_are_refused(journal: ToldJournal, tmp_path: Path) -> None:
    store = RocksViews(tmp_path)
    followed(journal, store)
    other = ToldJournal(topic_id="journal-2")
    with pytest.raises(JournalReplaced):
        followed(other, store)
    store.close()


def test_a_journal_with_another_past_is_refused(journal: ToldJournal, tmp_path: Path) -> None:
    store = RocksViews(tmp_path)
    followed(journal, store)
    last = journal.records[-1]
    journal.records[-1] = last._replace(value=last.value[:-1] + b"\x7f")
    with pytest.raises(JournalReplaced):
        followed(journal, store)
    store.close()


def test_a_cause_names_the_input_by_its_ordinal() -> None:
    runs = (
        InputRun(topic=2, partition=1, first=40, next=42),
        InputRun(topic=0, partition=5, first=7, next=8),
    )
    assert sources_of(runs) == [Source(2, 1, 40), Source(2, 1, 41), Source(0, 5, 7)]
