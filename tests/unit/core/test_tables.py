"""Rows, keys and images: the order of keys, changes over stored rows, and one hash for both."""

from random import Random

import pytest

from streams.core.rows import KINDS
from streams.core.tables import TABLES, Overlay, Table, after, chain_hash, pack
from tests.support import core as c

SORTED = [
    ("", 0),
    ("", 2**63),
    ("a", 0),
    ("a", 2),
    ("a", 10),
    ("a", 256),
    ("a ", 0),
    ("ab", 0),
    ("z", 1),
    ("ä", 1),
]


def test_keys_sort_as_their_parts_do():
    assert [pack(*parts) for parts in SORTED] == sorted(pack(*parts) for parts in SORTED)


@pytest.mark.parametrize("prefix", ["a", "ab", "ä"])
def test_what_begins_with_a_prefix_lies_between_it_and_its_end(prefix):
    first, end = pack(prefix), after(pack(prefix))
    inside = [pack(*parts) for parts in SORTED if first <= pack(*parts) < end]
    assert inside == [pack(*parts) for parts in SORTED if parts[0] == prefix]


def test_every_table_has_a_kind_and_a_number_of_its_own():
    assert set(KINDS) == set(TABLES)
    named = {name: number for name, number in vars(Table).items() if name.isupper()}
    assert list(named.values()) == list(TABLES)


def overlay_of(rows):
    return Overlay(rows, {Table.BUCKET: int, Table.TAKEN: int})


def test_a_change_is_seen_at_once_and_stored_by_its_image():
    rows = c.MemoryRows()
    overlay = overlay_of(rows)
    assert overlay.get(Table.TAKEN, b"k") is None
    overlay.put(Table.TAKEN, b"k", 1)
    overlay.put(Table.TAKEN, b"k", 2)
    assert overlay.get(Table.TAKEN, b"k") == 2
    assert rows.values == {}
    images = overlay.drain()
    assert images == [(Table.TAKEN, b"k", b"\x02")]
    rows.write(images)
    assert (overlay.get(Table.TAKEN, b"k"), overlay.drain()) == (2, [])


def test_a_deletion_hides_the_row_and_its_image_has_no_value():
    rows = c.MemoryRows()
    overlay = overlay_of(rows)
    overlay.put(Table.TAKEN, b"k", 1)
    rows.write(overlay.drain())
    overlay.delete(Table.TAKEN, b"k")
    assert overlay.get(Table.TAKEN, b"k") is None
    assert overlay.scan(Table.TAKEN, b"", b"\xff", 9) == []
    rows.write(overlay.drain())
    assert rows.values == {}


def test_images_come_in_the_order_of_tables_and_keys():
    overlay = overlay_of(c.MemoryRows())
    for table, key in ((Table.BUCKET, b"b"), (Table.TAKEN, b"z"), (Table.BUCKET, b"a")):
        overlay.put(table, key, 1)
    drained = [(table, key) for table, key, _ in overlay.drain()]
    assert drained == [(Table.TAKEN, b"z"), (Table.BUCKET, b"a"), (Table.BUCKET, b"b")]


def test_a_loaded_table_is_whole_whatever_the_page(monkeypatch):
    monkeypatch.setattr("streams.core.tables.LOAD_PAGE_ROWS", 3)
    rows = c.MemoryRows()
    overlay = overlay_of(rows)
    for n in range(10):
        overlay.put(Table.TAKEN, bytes([n]), n)
    rows.write(overlay.drain())
    assert overlay.load(Table.TAKEN) == [(bytes([n]), n) for n in range(10)]


@pytest.mark.parametrize("seed", range(30))
def test_a_scan_sees_stored_rows_and_changes_as_one_table(seed):
    chance, rows = Random(seed), c.MemoryRows()
    overlay, model = overlay_of(rows), {}
    for step in range(300):
        key = bytes([chance.randrange(40)])
        if chance.random() < 0.6:
            model[key] = step
            overlay.put(Table.TAKEN, key, step)
        else:
            model.pop(key, None)
            overlay.delete(Table.TAKEN, key)
        if chance.random() < 0.1:
            rows.write(overlay.drain())
        first, end = sorted(bytes([chance.randrange(41)]) for _ in range(2))
        limit = chance.choice([1, 2, 5, 50])
        wanted = sorted((k, v) for k, v in model.items() if first <= k < end)[:limit]
        assert overlay.scan(Table.TAKEN, first, end, limit) == wanted


GENESIS = bytes(32)
PAIRS = [
    ([(Table.CELL, b"k", b"v")], [(Table.TAKEN, b"k", b"v")]),
    ([(Table.CELL, b"k", b"v")], [(Table.CELL, b"k", b"w")]),
    ([(Table.CELL, b"k", b"")], [(Table.CELL, b"k", None)]),
    ([(Table.CELL, b"kv", b"")], [(Table.CELL, b"k", b"v")]),
    ([(Table.CELL, b"k", None)], []),
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_batches_that_differ_have_different_hashes(one, other):
    assert chain_hash(GENESIS, one) != chain_hash(GENESIS, other)


def test_a_hash_stands_for_the_whole_chain_before_it():
    batch = [(Table.CELL, b"k", b"v")]
    assert chain_hash(GENESIS, batch) == chain_hash(GENESIS, tuple(batch))
    assert chain_hash(chain_hash(GENESIS, batch), batch) != chain_hash(GENESIS, batch)
