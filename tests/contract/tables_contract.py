"""What the fold assumes about tables."""

from collections.abc import Callable

from schemas.ids import OwnerId, StateHash
from schemas.journal import Head
from streams.core.tables import TABLES, Table
from streams.shell.tables import Applied, TableStore


def applied(offset: int) -> Applied:
    return Applied(
        topic_id="id",
        core_version=1,
        head=Head(offset, offset, 1, OwnerId(b"o" * 16), 1),
        next_offset=offset + 1,
        entry_digest=b"d" * 32,
        state_hash=StateHash(b"h" * 32),
        time_ms=1_700_000_000_000,
        published=-1,
        anchor_append_ms=1,
        anchor_time_ms=2,
        anchor_leader_epoch=0,
    )


class TablesContract:
    """Subclasses give the fixture `reopen`: close what is open and open the same rows again."""

    def test_a_new_store_is_empty(self, reopen: Callable[[], TableStore]) -> None:
        store = reopen()
        assert store.applied() is None
        assert store.get(Table.CELL, b"") is None
        assert list(store.scan(Table.TIMER, b"", b"\xff" * 9, 10)) == []

    def test_a_batch_is_seen_at_once_and_after_opening_again(
        self, reopen: Callable[[], TableStore]
    ) -> None:
        store = reopen()
        store.write([(Table.CELL, b"", b"one"), (Table.POOL, b"p", b"two")], applied(7))
        _check(store)
        _check(reopen())

    def test_later_images_replace_and_none_deletes(self, reopen: Callable[[], TableStore]) -> None:
        store = reopen()
        store.write([(Table.POOL, b"a", b"1"), (Table.POOL, b"b", b"1")], applied(0))
        store.write([(Table.POOL, b"a", b"2"), (Table.POOL, b"b", None)], applied(1))
        assert list(reopen().scan(Table.POOL, b"", b"\xff", 10)) == [(b"a", b"2")]

    def test_a_scan_is_ordered_half_open_limited_and_within_its_table(
        self, reopen: Callable[[], TableStore]
    ) -> None:
        store = reopen()
        keys = [bytes((n,)) for n in (9, 3, 0, 255, 4, 200)]
        around = [(Table.QUEUE, b"\x00", b"q"), (Table.TENANT, b"\x00", b"t")]
        store.write([*((Table.TIMER, key, key) for key in keys), *around], applied(0))
        assert [k for k, _ in store.scan(Table.TIMER, b"", b"\xff\xff", 10)] == sorted(keys)
        assert [k for k, _ in store.scan(Table.TIMER, b"\x03", b"\x09", 10)] == [b"\x03", b"\x04"]
        assert [k for k, _ in store.scan(Table.TIMER, b"", b"\xff\xff", 2)] == [b"\x00", b"\x03"]
        assert list(store.scan(Table.TIMER, b"\x05", b"\x05", 10)) == []

    def test_tables_do_not_share_keys(self, reopen: Callable[[], TableStore]) -> None:
        store = reopen()
        store.write([(table, b"k", bytes((table,))) for table in TABLES], applied(0))
        for table in TABLES:
            assert store.get(table, b"k") == bytes((table,))
            assert list(store.scan(table, b"", b"\xff", 5)) == [(b"k", bytes((table,)))]

    def test_a_cleared_store_is_new(self, reopen: Callable[[], TableStore]) -> None:
        store = reopen()
        store.write([(Table.CELL, b"", b"one")], applied(3))
        store.clear()
        assert store.applied() is None
        assert store.get(Table.CELL, b"") is None
        store.write([(Table.CELL, b"", b"two")], applied(0))
        assert reopen().get(Table.CELL, b"") == b"two"


def _check(rows: TableStore) -> None:
    assert (rows.get(Table.CELL, b""), rows.get(Table.POOL, b"p")) == (b"one", b"two")
    assert rows.applied() == applied(7)
