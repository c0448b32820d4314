"""The tables on RocksDB."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from streams.core.tables import Table
from streams.shell.rocks import RocksTables
from streams.shell.tables import TablesInUse, TableStore, WrongStore
from tests.contract.tables_contract import TablesContract, applied


class TestRocksTables(TablesContract):
    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Iterator[Callable[[], TableStore]]:
        opened: list[RocksTables] = []

        def reopen() -> TableStore:
            if opened:
                opened.pop().close()
            opened.append(RocksTables(tmp_path / "rows"))
            return opened[-1]

        yield reopen
        for store in opened:
            store.close()

    def test_a_second_opener_is_refused_while_the_first_lives(self, tmp_path: Path) -> None:
        first = RocksTables(tmp_path)
        with pytest.raises(TablesInUse, match="EVENHAND_DATA_DIR"):
            RocksTables(tmp_path)
        first.close()
        RocksTables(tmp_path).close()

    def test_closing_frees_the_lock_also_after_scans(self, tmp_path: Path) -> None:
        store = RocksTables(tmp_path)
        store.write([(Table.TIMER, bytes((n,)), b"x") for n in range(50)], applied(0))
        rows = store.scan(Table.TIMER, b"", b"\xff", 3)
        store.close()
        again = RocksTables(tmp_path)
        assert list(again.scan(Table.TIMER, b"", b"\xff", 3)) == list(rows)
        again.close()

    def test_foreign_rows_are_told_from_ours(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("streams.shell.rocks._encode_applied", lambda _: b"\xc1nonsense")
        store = RocksTables(tmp_path)
        store.write([], applied(0))
        store.close()
        with pytest.raises(WrongStore):
            RocksTables(tmp_path)
