"""The client for programs with threads: submit work, look at it, cancel it, or get permission."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from threading import Lock
from types import TracebackType
from typing import Any, Final, Self, Unpack

from evenhand._attempt import Attempt
from evenhand._http import HttpTransport
from evenhand._intent import (
    ANSWER_WAIT_S,
    Intent,
    PoolIntent,
    acquisition,
    admitted,
    identity,
    links,
    patience_s,
    submission,
)
from evenhand._self_pool import SelfPool
from evenhand._transport import Kafka, Links, Submission, Transport
from evenhand._words import bodies
from evenhand.errors import EvenhandError, Unreachable

RETRY_S: Final = 30.0
PLACES: Final = 64
"""Permissions that one process may hold at once."""


class Client:
    """Submits work and follows it; `acquire` gives permission for a call in this very process.

    With `url` and `api_key`, requests go over the API, and the key names tenant and user. With
    `kafka`, `tenant` and `user`, submissions and cancellations go straight to the topics, and
    `acquire` works; `get` and `wait_admitted` ask the API in any case.

        with Client(url="https://evenhand.example", api_key=key) as client:
            told = client.submit(
                pool="default", domain="gpt", prompt_tokens=900, output_tokens_max=300,
                start_within_ms=60_000, payload_ref="s3://…", idempotency_key="invoice-17",
            )
    """

    def __init__(
        self,
        *,
        url: str | None = None,
        api_key: str | None = None,
        kafka: Links | None = None,
        tenant: str | None = None,
        user: str | None = None,
        places: int = PLACES,
        retry_s: float = RETRY_S,
        transport: Transport | None = None,
    ) -> None:
        """Connects when first used, but for `kafka`, which connects at once.

        Args:
            url: of the API; None means EVENHAND_API_URL, else http://127.0.0.1:8080.
            api_key: None means EVENHAND_API_KEY.
            kafka: the cell's topics.
            tenant: whose work it is; needed with `kafka`.
            user: person or service in the tenant; needed with `kafka`.
            places: calls that may have permission at once.
            retry_s: how long a request is sent again, always with the same key.
            transport: instead of the API, for tests.
        """
        self._kafka, self._identity = kafka, (tenant, user)
        self._places = places
        self._own: SelfPool | None = None
        self._lock = Lock()
        self._transport = transport or HttpTransport(url, api_key, retry_s=retry_s)
        if isinstance(kafka, Kafka):
            from evenhand._requests import KafkaTransport  # noqa: PLC0415 - needs the extra `kafka`

            who = identity(tenant, user)
            self._transport = KafkaTransport(kafka, who, wait_s=retry_s, reads=self._transport)

    def submit(
        self,
        *,
        idempotency_key: str,
        wait_admitted_ms: int | None = None,
        **intent: Unpack[PoolIntent],
    ) -> bodies.Submitted:
        """Submit one operation; it is durable when this returns.

        Args:
            idempotency_key: names the intent; the same key and payload are one operation for ever.
            wait_admitted_ms: how long to wait for the admission decision, over the API.
            intent: the fields of `Intent`, and `pool`.

        Returns: its id, and how far it is.

        Raises:
            EvenhandError: refused, by the class of its code; `keep_key` says what to do next.
            Unreachable: no answer; send it again with the same key.
        """
        return self._transport.submit(
            submission(intent, idempotency_key=idempotency_key, wait_admitted_ms=wait_admitted_ms)
        )

    def get(self, operation: str, *, at_least: str | None = None) -> bodies.Operation:
        """The operation as it is now.

        Args:
            operation: its id, in hex.
            at_least: a position, or the `input` of what was submitted: the answer reflects it.

        Raises:
            NotFound: there is none, or it is another tenant's.
            Behind: the API did not reach `at_least` in time.
        """
        return self._transport.get(operation, at_least=at_least, wait_s=RETRY_S)

    def wait_admitted(
        self, submitted: bodies.Submitted, *, timeout_s: float = RETRY_S
    ) -> bodies.Operation:
        """Wait for the admission decision.

        Returns: the operation, admitted or further.

        Raises:
            EvenhandError: it was refused, by the class of its code.
            Behind: not decided within the time, or the API has not seen it yet.
        """
        found = self._transport.get(submitted.operation, at_least=submitted.input, wait_s=timeout_s)
        return admitted(found)

    def cancel(self, operation: str, *, reason: str = "") -> str:
        """Ask for the end of an operation; durable when this returns, and repeats are harmless.

        Returns: the input, which `get` takes as `at_least` to show what came of it.
        """
        return self._transport.cancel(operation, reason=reason)

    @contextmanager
    def acquire(
        self, *, idempotency_key: str | None = None, **intent: Unpack[Intent]
    ) -> Iterator[Attempt]:
        """Permission for one call in this process: waits for its turn, settles on leaving.

        Inside, call `sent()` right after the call went out, and `usage(...)` with what it used. An
        exception settles it as failed; NotSent, before `sent()`, gives it back.

        Args:
            idempotency_key: names the intent; None makes this very call one of its own.
            intent: the fields of `Intent`; without a deadline it waits for 60 s.

        Raises:
            DeadlinePassed: its turn did not come in time.
            EvenhandError: refused, by the class of its code.
            Unreachable: nobody answered.
        """
        asked = acquisition(intent, idempotency_key=idempotency_key or secrets.token_hex(16))
        own = self._self_pool()
        attempt = _wait(own, asked)
        try:
            yield attempt
        except BaseException as failure:
            own.end(attempt, failure)
            raise
        own.end(attempt, None)

    def close(self) -> None:
        """Wait for the end of what was permitted, and let go."""
        if self._own is not None:
            self._own.stop().result()
        self._transport.close()

    def __enter__(self) -> Self:
        """As it is."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()

    def _self_pool(self) -> SelfPool:
        with self._lock:
            if self._own is None or self._own.ended:
                own = SelfPool(links(self._kafka), identity(*self._identity), places=self._places)
                joined = own.start()
                try:
                    joined.result(ANSWER_WAIT_S)
                except TimeoutError:
                    own.stop()
                    raise Unreachable("Expected to join pool self, but no owner answered") from None
                self._own = own
            return self._own


def _wait(own: SelfPool, asked: Submission) -> Attempt:
    heard: SimpleQueue[Any] = SimpleQueue()
    operation = own.ask(asked, heard.put)
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
