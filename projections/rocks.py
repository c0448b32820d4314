"""The rows of all views in RocksDB: a fold of the journal, so it may be deleted at any time."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from rocksdict import BlockBasedOptions, Cache, Options, Rdict, ReadOptions, WriteBatch

from .ports import Mark, Snapshot, ViewsInUse

MEMTABLE_BYTES = 4 * 1024 * 1024
CACHE_BYTES = 32 * 1024 * 1024
BLOOM_BITS_PER_KEY = 10
OPEN_FILES_MAX = 128
DELETES_WINDOW, DELETES_IN_WINDOW = 512, 256
"""Waiting rows are written once and deleted once: a file half full of deletions is compacted, so
that a scan from the head of a queue does not walk over its past."""

_MARK = b"\xff"
"""Beyond every projection's number."""
_HELD = ("While lock file", "lock hold by")
"""How RocksDB says that another process, or this one, has the folder; as a bare Exception."""
_ABSENT = "key not found"
"""All that rocksdict says of a missing key in a snapshot, as a bare Exception."""

_decode_mark = msgspec.msgpack.Decoder(Mark).decode
_encode_mark = msgspec.msgpack.Encoder().encode


class _RocksSnapshot:
    """`Snapshot` of a RocksDB snapshot."""

    def __init__(self, source: Any) -> None:
        self._source = source

    def get(self, key: bytes) -> bytes | None:
        try:
            value: bytes = self._source[key]
        except Exception as error:
            if str(error) != _ABSENT:
                raise
            return None
        return value

    def scan(self, first: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        within = ReadOptions()
        within.set_iterate_upper_bound(end)
        yield from self._source.items(from_key=first, read_opt=within)

    def mark(self) -> Mark | None:
        stored = self.get(_MARK)
        return None if stored is None else _decode_mark(stored)


class RocksViews:
    """`ViewStore` on a directory that only this object has open."""

    def __init__(self, path: Path) -> None:
        """Open, and create what is missing.

        Raises:
            ViewsInUse: another process has it open.
            Exception: the disk failed (rocksdict's own error).
        """
        path.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._db = _opened(str(path))

    def get(self, key: bytes) -> bytes | None:
        """The row, or None."""
        value: bytes | None = self._db.get(key)
        return value

    def scan(self, first: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Rows with `first <= key < end` in key order."""
        return _RocksSnapshot(self._db).scan(first, end)

    def mark(self) -> Mark | None:
        """How far the rows have come."""
        stored = self._db.get(_MARK)
        return None if stored is None else _decode_mark(stored)

    def snapshot(self) -> Snapshot:
        """What is there now; later writes do not change it."""
        return _RocksSnapshot(self._db.snapshot())

    def write(self, rows: Iterable[tuple[bytes, bytes | None]], mark: Mark) -> None:
        """Write all rows, None deletes, and the mark atomically."""
        batch = WriteBatch(raw_mode=True)
        for key, value in rows:
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
        batch.put(_MARK, _encode_mark(mark))
        self._db.write(batch)

    def clear(self) -> None:
        """Forget everything, by beginning with an empty directory."""
        self._db.close()
        Rdict.destroy(str(self._path), Options(raw_mode=True))
        self._db = _opened(str(self._path))

    def close(self) -> None:
        """Free every handle and the lock."""
        self._db.close()


def _opened(path: str) -> Rdict:
    try:
        return Rdict(path, _options())
    except Exception as error:
        if not any(held in str(error) for held in _HELD):
            raise
        raise ViewsInUse(
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
