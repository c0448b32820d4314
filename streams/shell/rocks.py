"""The rows of one cell in RocksDB: a fold of the journal, so it may be deleted at any time.

All tables share one column family; a row's key begins with its table's number. A column family for
each would cost fifteen memtables where one suffices, a handle each that can hold the lock, and
atomic flushes; the byte in front costs 0.1 µs a row. Nothing is ever synced: a kill loses nothing,
and the tail that a power cut may take is in the journal.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import cast

import msgspec
from rocksdict import BlockBasedOptions, Cache, Options, Rdict, ReadOptions, WriteBatch

from streams.core.tables import TABLES, Image
from streams.shell.tables import Applied, TablesInUse, WrongStore

MEMTABLE_BYTES = 4 * 1024 * 1024
"""With 64 MiB the same rows need three times the memory and are no faster to write."""
CACHE_BYTES = 32 * 1024 * 1024
"""Blocks, indexes and filters of all tables together; the operating system caches the rest."""
BLOOM_BITS_PER_KEY = 10
"""One read in a hundred for an absent key touches the disk."""
OPEN_FILES_MAX = 128
DELETES_WINDOW, DELETES_IN_WINDOW = 512, 256
"""Queues and timers are written once and deleted once: a file half full of deletions is compacted,
so that a scan from the head of a queue does not walk over its past."""

_HELD = ("While lock file", "lock hold by")
"""How RocksDB says that another process, or this one, has the folder; as a bare Exception."""
_APPLIED = b"\xff"
"""Beyond every table's number."""
_NUMBERS = tuple(bytes((table,)) for table in TABLES)

Rows = Iterator[tuple[bytes, bytes]]

_decode_applied = msgspec.msgpack.Decoder(Applied).decode
_encode_applied = msgspec.msgpack.Encoder().encode


class RocksTables:
    """`TableStore` on a directory that only this object has open."""

    def __init__(self, path: Path) -> None:
        """Open, and create what is missing.

        Raises:
            TablesInUse: another process has it open.
            WrongStore: `path` holds rows written by another form of this class.
            Exception: the disk failed (rocksdict's own error).
        """
        path.mkdir(parents=True, exist_ok=True)
        self._path = str(path)
        self._db = _opened(self._path)
        stored = self._db.get(_APPLIED)
        try:
            self._applied = None if stored is None else _decode_applied(stored)
        except msgspec.DecodeError as error:
            self.close()
            raise WrongStore(f"Expected the applied position in {path}, but {error}") from error

    def get(self, table: int, key: bytes) -> bytes | None:
        """The row, or None."""
        value: bytes | None = self._db.get(_NUMBERS[table] + key)
        return value

    def scan(
        self, table: int, first: bytes, end: bytes, limit: int
    ) -> Sequence[tuple[bytes, bytes]]:
        """At most `limit` rows with `first <= key < end`, in key order."""
        number = _NUMBERS[table]
        within = ReadOptions()
        within.set_iterate_upper_bound(number + end)
        found = self._db.items(from_key=number + first, read_opt=within)
        return [(key[1:], value) for key, value in islice(cast("Rows", found), limit)]

    def applied(self) -> Applied | None:
        """What the last batch recorded; None for an empty store."""
        return self._applied

    def write(self, images: Sequence[Image], applied: Applied) -> None:
        """Write all images and `applied` atomically; later reads see them."""
        batch = WriteBatch(raw_mode=True)
        for table, key, value in images:
            if value is None:
                batch.delete(_NUMBERS[table] + key)
            else:
                batch.put(_NUMBERS[table] + key, value)
        batch.put(_APPLIED, _encode_applied(applied))
        self._db.write(batch)
        self._applied = applied

    def clear(self) -> None:
        """Forget all rows and `applied`; what follows is a fold from the journal's start."""
        self._db.close()
        Rdict.destroy(self._path)
        self._db = _opened(self._path)
        self._applied = None

    def close(self) -> None:
        """Free every handle and the lock."""
        self._db.close()


def _opened(path: str) -> Rdict:
    try:
        return Rdict(path, _options())
    except Exception as error:
        if not any(held in str(error) for held in _HELD):
            raise
        raise TablesInUse(
            f"Expected {path} for this process alone, but another one has it open; "
            "give each process an EVENHAND_DATA_DIR of its own"
        ) from error


def _options() -> Options:
    blocks = BlockBasedOptions()
    blocks.set_block_cache(Cache(CACHE_BYTES))
    blocks.set_bloom_filter(BLOOM_BITS_PER_KEY, block_based=False)
    blocks.set_cache_index_and_filter_blocks(True)
    options = Options(raw_mode=True)
    options.create_if_missing(create_if_missing=True)
    options.set_block_based_table_factory(blocks)
    options.set_write_buffer_size(MEMTABLE_BYTES)
    options.set_max_open_files(OPEN_FILES_MAX)
    options.set_keep_log_file_num(2)
    options.add_compact_on_deletion_collector_factory(DELETES_WINDOW, DELETES_IN_WINDOW, 0.5)
    return options
