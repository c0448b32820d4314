"""The client for event loops: name for name and word for word the twin of `client.py`."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Final, Self, Unpack

from evenhand._aio_self_pools import AsyncSelfPools
from evenhand._http import AsyncHttpTransport
from evenhand._intent import (
    ENDED,
    Intent,
    PoolIntent,
    Waiting,
    acquisition,
    admitted,
    identity,
    submission,
)
from evenhand._outcome import Result, by_the_rule
from evenhand._self_pools import PLACES
from evenhand._transport import AsyncTransport, Kafka, Links
from evenhand._words import bodies
from evenhand.aio_attempt import AsyncAttempt

RETRY_S: Final = 30.0
END_WAIT_S: Final = 300.0


class AsyncClient:
    """Submits work and follows it; `acquire` gives permission for a call in this very process.

    With `url` and `api_key`, requests go over the API, and the key names tenant and user. With
    `via=Kafka()`, `tenant` and `user`, submissions and cancellations go straight to the topics, and
    `acquire` works; `get` and `wait_admitted` ask the API in any case.

        async with AsyncClient(url="https://evenhand.example", api_key=key) as client:
            told = await client.submit(
                pool="default", domain="gpt", prompt_tokens=900, output_tokens_max=300,
                start_within_ms=60_000, payload_ref="s3://…", idempotency_key="invoice-17",
            )
    """

    def __init__(  # noqa: PLR0913 - all are keywords, and each has a default
        self,
        *,
        url: str | None = None,
        api_key: str | None = None,
        via: Links | None = None,
        tenant: str | None = None,
        user: str | None = None,
        places: int = PLACES,
        retry_s: float = RETRY_S,
        classify: Callable[[BaseException, AsyncAttempt], Result | None] = by_the_rule,
        transport: AsyncTransport | None = None,
    ) -> None:
        """Connects when first used, but for `Kafka`, which connects at once.

        Args:
            url: of the API; None means EVENHAND_API_URL, else http://127.0.0.1:8080.
            api_key: None means EVENHAND_API_KEY.
            via: how its own calls get permission: `Kafka()`, `Http(url, key)`, or a fake in tests.
            tenant: whose work it is; needed with `via`.
            user: person or service in the tenant; needed with `via`.
            places: calls that may have permission at once.
            retry_s: how long a request is sent again, always with the same key.
            classify: says what an exception inside `acquire` means; None leaves it to the rule
                there.
            transport: instead of the API, for tests.
        """
        self._identity = (tenant, user)
        self._retry_s = retry_s
        self._pools = AsyncSelfPools(via, classify=classify, places=places)
        self._transport = transport or AsyncHttpTransport(url, api_key, retry_s=retry_s)
        if isinstance(via, Kafka):
            from evenhand._requests import (  # noqa: PLC0415 - needs the extra `kafka`
                AsyncKafkaTransport,
            )

            who = identity(tenant, user)
            self._transport = AsyncKafkaTransport(via, who, wait_s=retry_s, reads=self._transport)

    async def submit(
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
        return await self._transport.submit(
            submission(intent, idempotency_key=idempotency_key, wait_admitted_ms=wait_admitted_ms)
        )

    async def get(self, operation: str, *, at_least: str | None = None) -> bodies.Operation:
        """The operation as it is now.

        Args:
            operation: its id, in hex.
            at_least: a position, or the `input` of what was submitted: the answer reflects it.

        Raises:
            NotFound: there is none, or it is another tenant's.
            Behind: the API did not reach `at_least` in time.
        """
        return await self._transport.get(operation, at_least=at_least, wait_s=self._retry_s)

    async def wait_admitted(
        self, submitted: bodies.Submitted, *, timeout_s: float = RETRY_S
    ) -> bodies.Operation:
        """Wait for the admission decision.

        Returns: the operation, admitted or further.

        Raises:
            EvenhandError: it was refused, by the class of its code.
            Behind: not decided within the time, or the API has not seen it yet.
        """
        found = await self._transport.get(
            submitted.operation, at_least=submitted.input, wait_s=timeout_s
        )
        return admitted(found)

    async def cancel(self, operation: str, *, reason: str = "") -> str:
        """Ask for the end of an operation; durable when this returns, and repeats are harmless.

        Returns: the input, which `get` takes as `at_least` to show what came of it.
        """
        return await self._transport.cancel(operation, reason=reason)

    async def wait_result(
        self, submitted: bodies.Submitted | str, *, timeout_s: float = END_WAIT_S
    ) -> bodies.Operation:
        """Wait until the operation has ended; a success is told only once it is recorded.

        Args:
            submitted: what `submit` returned, or an operation's id in hex.
            timeout_s: how long to wait.

        Returns: the operation as it ended; `state` and `outcome` say how.

        Raises:
            StillRunning: it has not ended within the time; the error has its id.
            EvenhandError: it was refused, by the class of its code.
            NotFound: there is none, or it is another tenant's.
        """
        waiting = Waiting(submitted, timeout_s)
        while True:
            found = await self._transport.get(
                waiting.operation,
                at_least=waiting.at_least,
                wait_s=self._retry_s,
                ended_within_s=waiting.left_s(),
            )
            if found.state in ENDED:
                return admitted(found)
            await asyncio.sleep(waiting.pause_s())

    @asynccontextmanager
    async def acquire(
        self, *, idempotency_key: str | None = None, **intent: Unpack[Intent]
    ) -> AsyncIterator[AsyncAttempt]:
        """Permission for one call in this process: waits for its turn, settles on leaving.

        Inside, call `sent()` right after the call went out, and `usage(...)` with what it used.
        NotSent, or an exception that shows that there was no connection, gives it back if nothing
        was sent; after any other exception the outcome is unknown. Nothing is tried again by
        itself: ask once more, with a fresh key.

        Args:
            idempotency_key: names the intent; None makes this very call one of its own.
            intent: the fields of `Intent`; without a deadline it waits for 60 s.

        Raises:
            DeadlinePassed: its turn did not come in time.
            EvenhandError: refused, by the class of its code.
            Unreachable: nobody answered.
        """
        asked = acquisition(intent, idempotency_key=idempotency_key or secrets.token_hex(16))
        async with self._pools.acquire(identity(*self._identity), asked) as attempt:
            yield attempt

    async def close(self) -> None:
        """Wait for the end of what was permitted, and let go."""
        await self._pools.close()
        await self._transport.close()

    async def __aenter__(self) -> Self:
        """As it is."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        await self.close()
