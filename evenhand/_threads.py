"""The two threads of a member, the same for both twins: one reads its inbox, one is its heart.

    reader:  begin ─► [ receive ─► free places ─► hear ─► run ─► tick ]* ─► leave … resting ─► close
    heart:   a heartbeat that renews every lease, at least every second and three times a lease,
             whatever handlers, the reader or an event loop are doing

The reader alone owns the membership. Handlers run elsewhere and come back through `report`.
"""

import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, Final, Generic

from evenhand._attempt import A
from evenhand._life import Barred, Joining, Phase, Run, Step, Told
from evenhand._member import Membership
from evenhand._outcome import Result, result_of
from evenhand._transport import Link, Links
from evenhand._words import events, ids, inputs
from evenhand.errors import kind_of

RECEIVE_WAIT_S: Final = 0.05
"""A delivery wakes the reader at once; this bounds how late it sees anything else."""


def monotonic_clock() -> Callable[[], int]:
    """Nanoseconds that never step back and count suspension, where the system can tell it."""
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic_ns if boottime is None else partial(time.clock_gettime_ns, boottime)


def joining(pool: str, places: int, member: str | None, tenant: str | None = None) -> Joining:
    """What to join as; a member without a name gets one that nobody has."""
    return Joining(
        pool=ids.PoolId(pool),
        member=ids.MemberId(member or f"m-{secrets.token_hex(8)}"),
        places=places,
        tenant=None if tenant is None else ids.TenantId(tenant),
    )


class MemberThreads(Generic[A]):
    """One member at work, from `start` until `finished` is done."""

    def __init__(
        self,
        links: Links,
        joining: Joining,
        *,
        make: Callable[..., A],
        classify: Callable[[BaseException, A], Result | None],
        run: Callable[[Sequence[A]], None],
        told: Callable[[Any], None] = lambda _: None,
        wanted: Callable[[events.GrantIssued], bool] = lambda _: True,
        stop_wait_s: float,
    ) -> None:
        """Nothing happens before `start`.

        Args:
            links: where to link to.
            joining: what to join as.
            make: makes an attempt of its grant, as `BaseAttempt`.
            classify: the user's opinion of what a handler raised; None means the default.
            run: called by the reader with attempts whose call may go out; must not block.
            told: called by the reader with answers to submissions; must not block.
            wanted: called by the reader, whether to start a grant.
            stop_wait_s: how long started attempts may go on after `stop`.
        """
        self.joined: Future[None] = Future()
        """Done at the first member slot, or failed as `finished`."""
        self.finished: Future[None] = Future()
        """Done when everything has ended in order, or failed with the reason."""
        for future in (self.joined, self.finished):
            # From here on a waiting task that is cancelled cannot cancel it.
            future.set_running_or_notify_cancel()
        self._links, self._run, self._told, self._stop_wait_s = links, run, told, stop_wait_s
        self._classify = classify
        self._membership = Membership(
            joining,
            make=make,
            fresh_epoch=lambda: ids.MemberEpoch(secrets.token_hex(8)),
            now_ns=monotonic_clock(),
            report=self.send,
            wanted=lambda grant: not self._stop.is_set() and wanted(grant),
        )
        self._link: Link
        self._ended: deque[A] = deque()
        self._runs: list[A] = []
        self._stop = threading.Event()
        self._closed = threading.Event()

    @property
    def busy(self) -> int:
        """Attempts that hold a place; for the reader's own use."""
        return self._membership.busy

    def start(self) -> None:
        """Fix the place in the inbox, then start both threads. Blocks for the former.

        Raises:
            Unreachable: no broker answered; nothing was started.
        """
        self._link = self._links.link(self._membership.member)
        for name, loop in (("reader", self._read), ("heart", self._beat)):
            threading.Thread(target=loop, name=f"evenhand-{name}", daemon=True).start()

    def send(self, word: inputs.Input) -> None:
        """Hand a word over, from any thread."""
        self._link.send(word)

    def report(self, attempt: A, how: Result | BaseException | None) -> inputs.ResultReported:
        """Tell how an attempt ended, from any thread. Returns: what was told."""
        result = result_of(
            how,
            went_out=attempt.went_out,
            classify=lambda error: self._classify(error, attempt),
        )
        word = attempt.ended(result)
        # In this order: the grant that follows the result must find the place free.
        self._ended.append(attempt)
        self._link.send(word, durable=partial(self._membership.durable, attempt))
        return word

    def stop(self) -> None:
        """Take no more grants, finish what was started, then end. Does not wait."""
        self._stop.set()

    def _read(self) -> None:
        failure: Exception | None = None
        try:
            self._do([self._membership.begin()])
            while not self._stop.is_set():
                self._turn()
            left = self._membership.leave()
            self._do([] if left is None else [left])
            ends_at = time.monotonic() + self._stop_wait_s
            while not self._membership.resting and time.monotonic() < ends_at:
                self._turn()
        except Exception as error:  # noqa: BLE001 - it is raised where `finished` is waited for
            failure = error
            self._await_handlers()
        self._closed.set()
        self._link.close(self._stop_wait_s)
        for future in (self.joined, self.finished):
            _settle(future, failure)

    def _turn(self) -> None:
        heard = self._link.receive(RECEIVE_WAIT_S)
        while self._ended:
            self._ended.popleft()
            self._do(self._membership.ended())
        for event in heard:
            self._do(self._membership.heard(event))
        if self._runs:
            runs, self._runs = self._runs, []
            self._run(runs)
        self._do(self._membership.tick())
        if self._membership.phase is Phase.MEMBER and not self.joined.done():
            _settle(self.joined, None)

    def _do(self, steps: Sequence[Step[A]]) -> None:
        for step in steps:
            match step:
                case Run(attempt):
                    self._runs.append(attempt)
                case Told(event):
                    self._told(event)
                case Barred(code):
                    raise kind_of(code)(f"Expected to join, but the pool says {code}")
                case word:
                    self._link.send(word)

    def _await_handlers(self) -> None:
        ends_at = time.monotonic() + self._stop_wait_s
        while len(self._ended) < self._membership.running and time.monotonic() < ends_at:
            time.sleep(RECEIVE_WAIT_S)

    def _beat(self) -> None:
        while not self._closed.wait(self._membership.beat_every_s):
            for beat in self._membership.beat():
                self._link.send(beat)


def _settle(future: Future[None], failure: Exception | None) -> None:
    if future.done():
        return
    if failure is None:
        future.set_result(None)
    else:
        future.set_exception(failure)
