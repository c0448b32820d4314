"""Permission for calls of this process, for threads: one member of pool `self` for each tenant."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Any, Final

from evenhand._intent import ANSWER_WAIT_S, Identity, links, patience_s
from evenhand._outcome import Result
from evenhand._self_pool import SelfPool
from evenhand._transport import Links, Submission
from evenhand._words import ids
from evenhand.attempt import Attempt
from evenhand.errors import EvenhandError, Unreachable

PLACES: Final = 64
"""Permissions that one process may hold at once."""


class SelfPools:
    """Joins when permission is first asked for."""

    def __init__(
        self,
        via: Links | None,
        *,
        classify: Callable[[BaseException, Attempt], Result | None],
        places: int = PLACES,
    ) -> None:
        """Nothing happens before `acquire`."""
        self._via, self._classify, self._places = via, classify, places
        self._own: dict[ids.TenantId, SelfPool[Attempt]] = {}
        self._lock = Lock()

    @contextmanager
    def acquire(self, who: Identity, asked: Submission) -> Iterator[Attempt]:
        """Wait for permission; settle on leaving."""
        own = self._of(who.tenant)
        attempt = _wait(own, who, asked)
        try:
            yield attempt
        except BaseException as failure:
            own.end(attempt, failure)
            raise
        own.end(attempt, None)

    def close(self) -> None:
        """Wait for the end of what was permitted, and let go."""
        for ended in [own.stop() for own in self._own.values()]:
            ended.result()

    def _of(self, tenant: ids.TenantId) -> SelfPool[Attempt]:
        with self._lock:
            own = self._own.get(tenant)
            if own is None or own.ended:
                own = SelfPool(
                    links(self._via),
                    tenant,
                    make=partial(Attempt, acquire=self.acquire),
                    classify=self._classify,
                    places=self._places,
                )
                joined = own.start()
                try:
                    joined.result(ANSWER_WAIT_S)
                except TimeoutError:
                    own.stop()
                    raise Unreachable("Expected to join pool self, but no owner answered") from None
                self._own[tenant] = own
            return own


def _wait(own: SelfPool[Attempt], who: Identity, asked: Submission) -> Attempt:
    heard: SimpleQueue[Any] = SimpleQueue()
    operation = own.ask(who, asked, heard.put)
    try:
        while True:
            attempt = own.heard(heard.get(timeout=patience_s(asked)))
            if attempt is not None:
                return attempt
    except EvenhandError:
        own.forget(operation)
        raise
    except Empty:
        own.give_up(operation, "no answer")
        raise Unreachable("Expected an answer, but none came", operation=operation.hex()) from None
    except BaseException:
        own.give_up(operation, "the caller went away")
        raise
