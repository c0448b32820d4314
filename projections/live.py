"""Views that follow their journal in a thread, for a process that answers questions about it."""

import logging
from collections.abc import Callable, Sequence
from threading import Event, Thread
from time import monotonic

from schemas.ids import CellId, MemberId
from schemas.journal import Position

from .answers import Answers
from .arrivals import Arrivals
from .deliveries import Delivered, Deliveries, Told
from .follower import Accepted, Follower
from .ports import Entries, FollowerHalted, ViewStore
from .queries import Queries
from .recall import recalled
from .reflected import Progress, TakenInput, Wanted
from .views.members import LEFT
from .views.phases import OVER
from .waiters import Waiters

_log = logging.getLogger(__name__)

IDLE_WAIT_MS = 100
"""How long a read of an idle journal lasts; new records end it at once."""


class LiveViews:
    """One follower in a thread of its own; questions and waits may come from any other."""

    def __init__(
        self, *, cell: CellId, entries: Entries, store: ViewStore, halted: Callable[[], None]
    ) -> None:
        """Open the views; `halted` is told once if the follower cannot go on."""
        self._cell = cell
        self._entries = entries
        self._store = store
        self._halted = halted
        self._arrivals, self._endings = Arrivals(), Waiters[bytes]()
        self._follower = Follower(
            cell=cell,
            entries=entries,
            store=store,
            done=self._arrivals.advance,
            heard=self._hear,
            ended=self._endings.tell,
        )
        self._answers = Answers(cell)
        self._deliveries = self._recall()
        self._arrivals.advance(self._follower.reflected)
        self._end: int | None = None
        self._failure: str | None = None
        self._moved = monotonic()
        self._stop = Event()
        self._thread = Thread(target=self._run, name="follower", daemon=True)

    def _recall(self) -> Deliveries:
        mark, reflected = self._store.mark(), self._follower.reflected
        known = [] if mark is None else recalled(self._entries, mark.head)
        self._entries.begin(reflected.next_offset)
        members = self.ask().members().items()
        pools = {name: row.pool for name, row in members if row.state != LEFT}
        if not known:
            return Deliveries(self._cell, reflected.position, pools=pools)
        offset, entry = known[0]
        before = Position(self._cell, entry.generation, offset, -1)
        deliveries = Deliveries(self._cell, before, pools=pools)
        deliveries.hear(known)
        return deliveries

    def start(self) -> None:
        """Begin to follow; returns at once."""
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._moved = monotonic()
                if self._end is None:
                    self._end = self._entries.end()
                self._follower.step(IDLE_WAIT_MS)
        except FollowerHalted as error:
            _log.error("halted: %s: %s", type(error).__name__, error)
            self._fail(error)
        except Exception as error:  # noqa: BLE001  # stale answers must not look healthy
            _log.exception("halted by a fault of this program")
            self._fail(error)

    def _hear(self, entries: Sequence[Accepted]) -> None:
        self._answers.hear(entries)
        self._deliveries.hear(entries)

    def _fail(self, error: Exception) -> None:
        self._failure = f"{type(error).__name__}: {error}"
        self._halted()

    def ask(self) -> Queries:
        """Answers that all reflect one position."""
        return Queries(self._cell, self._store.snapshot())

    async def reach(self, wanted: Wanted, wait_ms: int) -> bool:
        """Whether the views reflect a position or an input, at once or within `wait_ms`."""
        return await self._arrivals.reach(wanted, wait_ms)

    async def ended(self, operation: bytes, wait_ms: int) -> bool:
        """Whether an operation is over, at once or within `wait_ms`."""

        def over() -> bool:
            row = self.ask().operation(operation)
            return row is not None and row.phase in OVER

        return await self._endings.wait(operation, wait_ms, over)

    def answers(self, taken: TakenInput) -> Sequence[Told] | None:
        """What an input caused; None if its entry is not kept (any more)."""
        return self._answers.to(taken)

    async def deliveries(self, member: MemberId, after: Position | None, wait_ms: int) -> Delivered:
        """What a member over HTTP has not heard, at once or within `wait_ms`.

        Raises:
            DeliveriesGone: the answer would have a gap.
        """
        return await self._deliveries.read(member, after, wait_ms)

    def progress(self) -> Progress:
        """How far the follower is."""
        reflected = self._follower.reflected
        return Progress(
            position=reflected.position,
            offset=reflected.next_offset,
            end=self._end,
            failure=self._failure,
            idle_s=monotonic() - self._moved,
        )

    def close(self) -> None:
        """Stop following and free store and reader."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._entries.close()
        self._store.close()
