"""A member's link over HTTP: words are posted in order, deliveries are read by position.

What is decided on a word is heard among the deliveries, as on the topics, never from its answer: so
each event is heard once, whatever is sent again.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from time import monotonic
from typing import Any, Final

import httpx

from evenhand._http import Request, again, connection, reached, read
from evenhand._http_poster import REST_S, REST_S_MAX, Post, Poster
from evenhand._http_said import HEART, refusal_of, request_of, track_of
from evenhand._transport import Link
from evenhand._words import bodies, events, ids, inputs, plain
from evenhand._words import member_bodies as m
from evenhand.errors import (
    DeliveriesGone,
    EvenhandError,
    InvalidField,
    LinkLost,
    Unauthenticated,
)

POLL_WAIT_S: Final = 5
"""How long a question for deliveries waits at the server. Short, so that a server that stops need
not wait for it; what comes is answered at once."""
ANSWER_WAIT_S: Final = 5.0
"""For the answer to a word; a connection that is silent for longer is taken for dead."""
BEAT_WAIT_S: Final = 1.0
"""A heartbeat that takes longer is overtaken by the next one."""
PLACE_WAIT_S: Final = 10.0
"""For the first answer of all."""

_LOG = logging.getLogger("evenhand")


@dataclass(frozen=True, slots=True)
class Http:
    """Where a cell's API is, for members that have no access to its topics.

    A worker's key joins pools, a tenant's key pool `self` of its tenant.
    """

    url: str | None = None
    """None means EVENHAND_API_URL, else http://127.0.0.1:8080."""
    api_key: str | None = None
    """None means EVENHAND_API_KEY."""

    def link(self, member: ids.MemberId) -> Link:
        """A link whose place among the deliveries is fixed when this returns.

        Raises:
            Unreachable: nobody answered.
            EvenhandError: the key is not accepted, or the name cannot be one over HTTP.
        """
        return HttpLink(self, member)


class HttpLink:
    """`Link` over the API."""

    def __init__(self, http: Http, member: ids.MemberId) -> None:
        """Fixes the place among the deliveries; raises as `Http.link`."""
        settings = connection(http.url, http.api_key)
        self._member = _full_name(settings["headers"].get("Authorization", ""), member)
        self._client = httpx.Client(**settings)
        self._heard: SimpleQueue[Any] = SimpleQueue()
        """Events, and reports that a word is durable."""
        self._failure: Exception | None = None
        self._closed = Event()
        self._posters: dict[str, Poster] = {}
        self._lock = Lock()
        try:
            self._next = self._place()
        except BaseException:
            self._client.close()
            raise
        self._position = self._written = self._next
        """Of the last delivery that came, and the input of the last submission."""
        self._reader = Thread(target=self._read, name="evenhand-deliveries", daemon=True)
        self._reader.start()

    def send(self, word: inputs.Input, durable: Callable[[], None] | None = None) -> None:
        """Hand a word over; `durable` is called inside `receive` or `close`."""
        post = Post(
            request=partial(self._request, word),
            answered=partial(self._answered, word, durable),
            refused=partial(self._refused, word, durable),
        )
        self._poster(track_of(word)).put(post)

    def _poster(self, track: str) -> Poster:
        with self._lock:
            poster = self._posters.get(track)
            if poster is None:
                beats = track == HEART
                poster = self._posters[track] = Poster(
                    self._client,
                    track,
                    timeout_s=BEAT_WAIT_S if beats else ANSWER_WAIT_S,
                    once=beats,
                )
            return poster

    def receive(self, wait_s: float) -> Sequence[Any]:
        """Deliveries to this member in order, each once.

        Raises:
            LinkLost: deliveries may have been missed.
            EvenhandError: the key is not accepted any more.
        """
        found: list[Any] = []
        try:
            self._take(self._heard.get(timeout=wait_s), found)
            while True:
                self._take(self._heard.get_nowait(), found)
        except Empty:
            if not found and self._failure is not None:
                raise self._failure from None
        return found

    def close(self, wait_s: float) -> None:
        """Wait until every word is durable, at most `wait_s`, and let go."""
        ends_at = monotonic() + wait_s
        with self._lock:
            posters = list(self._posters.values())
        for poster in posters:
            poster.end()
        said = [poster.ended(ends_at - monotonic()) for poster in posters]
        if not all(said):
            _LOG.warning("Some words were not confirmed in %s s and may be lost", wait_s)
        self._closed.set()
        self._report_durable()

    def _report_durable(self) -> None:
        """Call what waits for its word to be durable."""
        while not self._heard.empty():
            self._take(self._heard.get_nowait(), [])

    def _take(self, came: Any, found: list[Any]) -> None:
        if callable(came):
            came()
        else:
            found.append(came)

    # -- words: in the posters' threads ---------------------------------------------------------

    def _request(self, word: inputs.Input) -> Request:
        cancels = isinstance(word, inputs.CancellationRequested)
        at_least = self._written if cancels else self._position
        return request_of(word, member=self._member, at_least=at_least)

    def _answered(
        self, word: inputs.Input, durable: Callable[[], None] | None, response: httpx.Response
    ) -> None:
        if isinstance(word, inputs.OperationSubmitted):
            self._submitted(word, bodies.Submitted.model_validate_json(response.content))
        if durable is not None:
            self._heard.put(durable)

    def _submitted(self, word: inputs.OperationSubmitted, told: bodies.Submitted) -> None:
        if told.input is not None:
            self._written = told.input
            return
        # A repeat that the API knew: it was not sent on, so nothing about it is delivered.
        self._heard.put(
            events.DuplicateObserved(
                tenant=word.tenant,
                operation=ids.OperationId(bytes.fromhex(told.operation)),
                state=told.state,
                member=word.member,
            )
        )

    def _refused(
        self, word: inputs.Input, durable: Callable[[], None] | None, error: EvenhandError
    ) -> None:
        instead = refusal_of(word, error)
        if instead is not None:
            self._heard.put(instead)
        elif not isinstance(word, inputs.HeartbeatReported | inputs.CancellationRequested):
            _LOG.warning("%s was not taken: %s", type(word).__name__, error)
        if durable is not None:
            self._heard.put(durable)

    # -- deliveries: in the reader's thread -----------------------------------------------------

    def _place(self) -> str:
        ends_at, rest_s = monotonic() + PLACE_WAIT_S, REST_S
        while True:
            try:
                return self._ask(None, 0).next
            except EvenhandError as error:
                if again(inf, error) is False or monotonic() > ends_at:
                    raise
            self._closed.wait(rest_s)
            rest_s = min(2 * rest_s, REST_S_MAX)

    def _read(self) -> None:
        rest_s = REST_S
        while not self._closed.is_set():
            try:
                self._hear(self._ask(self._next, POLL_WAIT_S))
                rest_s = REST_S
            except DeliveriesGone as gone:
                self._failure = LinkLost(f"Expected the deliveries to go on, but {gone}")
                break
            except EvenhandError as error:
                wait = again(inf, error)
                if wait is False:
                    self._failure = error
                    break
                self._closed.wait(rest_s if wait is True else wait)
                rest_s = min(2 * rest_s, REST_S_MAX)
        self._closed.wait()
        self._client.close()

    def _ask(self, after: str | None, wait_s: int) -> m.Deliveries:
        asked = Request(
            method="GET",
            path=f"/v1/members/{self._member}/deliveries",
            headers={"Prefer": f"wait={wait_s}"},
            params={} if after is None else {"after": after},
            wait_s=wait_s,
        )
        with reached():
            return read(self._client.request(**asked.arguments()), m.Deliveries)

    def _hear(self, deliveries: m.Deliveries) -> None:
        for one in deliveries.items:
            self._position = one.position
            event = plain.event_of(one.type, one.event)
            if event is None:
                _LOG.warning("An event that a newer owner wrote is ignored: %s", one.type)
            else:
                self._heard.put(event)
        self._next = deliveries.next


def _full_name(authorization: str, member: str) -> str:
    key_id = authorization.removeprefix("Bearer ").removeprefix("eh_").partition("_")[0]
    if not key_id:
        raise Unauthenticated("Expected an API key, but there is none")
    try:
        m.Join(pool="any", places=1, member=member)
    except ValueError:
        raise InvalidField(
            "Expected a member's name of at most 100 ASCII letters, digits, dots and dashes"
        ) from None
    return ids.member_of_key(key_id, member)
