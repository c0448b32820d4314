"""What the engine and its simulation assume about a journal; each test is one line of it."""

from collections.abc import Callable

from schemas.topics import ENTRY_BYTES_MAX
from streams.shell.journal import Journal, Landing, Reader, Record, Writer

WAIT_MS = 20
ROUNDS = 500

Pass = Callable[[], None]
"""Lets time pass where it does not by itself."""


def land(writer: Writer, pass_time: Pass) -> Landing:
    for _ in range(ROUNDS):
        landing = writer.landed(WAIT_MS)
        if landing is not None:
            return landing
        pass_time()
    raise AssertionError("Expected the record to land")


def append(writer: Writer, value: bytes, pass_time: Pass) -> Landing:
    writer.send(value)
    return land(writer, pass_time)


def read(reader: Reader, count: int) -> list[Record]:
    records: list[Record] = []
    for _ in range(ROUNDS):
        records += reader.read(count - len(records), WAIT_MS)
        if len(records) >= count:
            return records
    raise AssertionError(f"Expected {count} records, but they end after {len(records)}")


class JournalContract:
    """Subclasses give `journal`, whole, empty and nobody else's, and `pass_time`."""

    def test_an_empty_journal_is_whole_and_has_an_id(
        self, journal: Journal, pass_time: Pass
    ) -> None:
        assert (journal.start(), journal.end()) == (0, 0)
        assert journal.topic_id() == journal.topic_id() != ""

    def test_offsets_are_dense_so_the_next_landing_is_known_in_advance(
        self, journal: Journal, pass_time: Pass
    ) -> None:
        writer = journal.writer()
        assert [append(writer, b"%d" % n, pass_time).offset for n in range(20)] == list(range(20))
        assert journal.end() == 20
        writer.close()

    def test_a_report_is_true_about_place_and_append_time(
        self, journal: Journal, pass_time: Pass
    ) -> None:
        writer = journal.writer()
        landings = [append(writer, b"%d" % n, pass_time) for n in range(5)]
        records = read(journal.reader(0), 5)
        assert [(r.offset, r.append_ms) for r in records] == landings
        assert [r.value for r in records] == [b"%d" % n for n in range(5)]
        writer.close()

    def test_append_times_never_go_back(self, journal: Journal, pass_time: Pass) -> None:
        writer = journal.writer()
        times = [append(writer, b"x", pass_time).append_ms for _ in range(20)]
        assert times == sorted(times)
        writer.close()

    def test_of_two_writers_both_land_and_all_readers_see_one_order(
        self, journal: Journal, pass_time: Pass
    ) -> None:
        one, other = journal.writer(), journal.writer()
        for _ in range(5):
            one.send(b"a")
            other.send(b"b")
            assert {land(one, pass_time).offset, land(other, pass_time).offset} <= set(range(10))
        assert journal.end() == 10
        seen = read(journal.reader(0), 10)
        assert seen == read(journal.reader(0), 10)
        assert sorted(r.value for r in seen) == [b"a"] * 5 + [b"b"] * 5
        one.close()
        other.close()

    def test_an_acknowledged_record_can_be_read_by_everybody(
        self, journal: Journal, pass_time: Pass
    ) -> None:
        writer, reader = journal.writer(), journal.reader(0)
        for n in range(5):
            landing = append(writer, b"x", pass_time)
            assert read(reader, 1)[0].offset == landing.offset == n
        writer.close()

    def test_a_reader_begins_at_its_offset_and_takes_at_most_its_limit(
        self, journal: Journal, pass_time: Pass
    ) -> None:
        writer = journal.writer()
        for n in range(6):
            append(writer, b"%d" % n, pass_time)
        reader = journal.reader(3)
        seen: list[int] = []
        while len(seen) < 3:
            some = reader.read(2, WAIT_MS)
            assert 1 <= len(some) <= 2
            seen += [record.offset for record in some]
        assert seen == [3, 4, 5]
        writer.close()

    def test_reading_at_the_end_waits_and_gives_nothing(
        self, journal: Journal, pass_time: Pass
    ) -> None:
        assert list(journal.reader(0).read(10, 50)) == []

    def test_the_largest_entry_fits(self, journal: Journal, pass_time: Pass) -> None:
        writer = journal.writer()
        append(writer, b"\xaa" * ENTRY_BYTES_MAX, pass_time)
        (record,) = read(journal.reader(0), 1)
        assert len(record.value) == ENTRY_BYTES_MAX
        writer.close()

    def test_letting_go_with_a_record_in_flight_hurts_nobody(
        self, journal: Journal, pass_time: Pass
    ) -> None:
        writer = journal.writer()
        writer.send(b"abandoned")
        writer.close()
        other = journal.writer()
        landing = append(other, b"next", pass_time)
        values = [r.value for r in read(journal.reader(0), landing.offset + 1)]
        assert values in ([b"next"], [b"abandoned", b"next"])
        other.close()

    def test_a_reader_can_be_let_go_twice(self, journal: Journal, pass_time: Pass) -> None:
        reader = journal.reader(0)
        reader.close()
        reader.close()
