"""Posts words one after the other, each until it is answered: order without a broker.

put ─► [ word, word, word ] ─► post ─► answered ─► next
└─ no answer, or come again: rest, then the same word
"""

import logging
from collections.abc import Callable
from math import inf
from queue import SimpleQueue
from threading import Event, Thread
from typing import Final, NamedTuple

import httpx

from evenhand._http import Request, again, reached, read
from evenhand._words import member_bodies
from evenhand.errors import EvenhandError

REST_S: Final = 0.05
REST_S_MAX: Final = 2.0
"""Between two tries of a request; doubled each time."""

_LOG = logging.getLogger("evenhand")


class Post(NamedTuple):
    """A request, and who is told what."""

    request: Callable[[], Request]
    """Made when its turn comes: what it must name may only be known then."""
    answered: Callable[[httpx.Response], None]
    refused: Callable[[EvenhandError], None]
    """Sending it again would not help."""


class Poster:
    """One queue and the thread that empties it."""

    def __init__(
        self, client: httpx.Client, name: str, *, timeout_s: float, once: bool = False
    ) -> None:
        """Begin.

        Args:
            client: what sends.
            name: of the thread.
            timeout_s: for one answer.
            once: give a word up that is not answered, since a newer one says the same.
        """
        self._client, self._timeout_s, self._once = client, timeout_s, once
        self._queue: SimpleQueue[Post | None] = SimpleQueue()
        self._given_up = Event()
        self._thread = Thread(target=self._run, name=f"evenhand-{name}", daemon=True)
        self._thread.start()

    def put(self, post: Post) -> None:
        """Hand over; returns at once."""
        self._queue.put(post)

    def end(self) -> None:
        """What was handed over is still sent. Does not wait."""
        self._queue.put(None)

    def ended(self, wait_s: float) -> bool:
        """Wait for the end, then give up what is left. Returns: whether nothing was."""
        self._thread.join(max(0.0, wait_s))
        if self._thread.is_alive():
            self._given_up.set()
            return False
        return True

    def _run(self) -> None:
        while (post := self._queue.get()) is not None and not self._given_up.is_set():
            self._until_answered(post)

    def _until_answered(self, post: Post) -> None:
        rest_s = REST_S
        while True:
            try:
                post.answered(self._ask(post.request()))
            except EvenhandError as error:
                wait = again(inf, error)
                if wait is False:
                    post.refused(error)
                    return
                if self._once or self._given_up.wait(rest_s if wait is True else wait):
                    return
                rest_s = min(2 * rest_s, REST_S_MAX)
            else:
                return

    def _ask(self, request: Request) -> httpx.Response:
        with reached():
            response = self._client.request(**{**request.arguments(), "timeout": self._timeout_s})
        if not response.is_success:
            read(response, member_bodies.Pending)
        return response
