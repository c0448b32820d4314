"""Requests over the API: one key over all repeats, which honour Retry-After and are bounded."""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from os import environ
from typing import Any, Final, TypeVar

import httpx
import stamina
from pydantic import BaseModel, ValidationError

from evenhand._transport import Submission
from evenhand._words import bodies, codes, problems
from evenhand.errors import EvenhandError, InvalidField, Unreachable, kind_of

ANSWER_WAIT_S: Final = 10.0
"""Beyond what the server was asked to wait; then the connection is taken for dead."""
ATTEMPTS_MAX: Final = 10
RETRY_WAIT_MAX_S: Final = 2.0
PREFER_WAIT_MAX_S: Final = 20
"""A proxy on the way closes what is silent for longer; the question is then asked again."""
DEFAULT_URL: Final = "http://127.0.0.1:8080"

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request, the same at every repeat."""

    method: str
    path: str
    body: BaseModel | None = None
    headers: dict[str, str] = field(default_factory=dict)
    params: dict[str, str | int] = field(default_factory=dict)
    wait_s: float = 0.0
    """How long the server may wait before it answers."""

    def arguments(self) -> dict[str, Any]:
        """As httpx wants it."""
        return {
            "method": self.method,
            "url": self.path,
            "json": self.body and self.body.model_dump(mode="json", exclude_unset=True),
            "headers": self.headers,
            "params": self.params,
            "timeout": ANSWER_WAIT_S + self.wait_s,
        }


def submit(submission: Submission) -> Request:
    """`POST /v1/operations`."""
    headers = {bodies.IDEMPOTENCY_KEY: quoted(submission.idempotency_key)}
    wait_ms = submission.wait_admitted_ms
    if wait_ms is not None:
        headers[bodies.WAIT_ADMITTED] = str(wait_ms)
    return Request(
        method="POST",
        path="/v1/operations",
        body=submission.body,
        headers=headers,
        wait_s=(wait_ms or 0) / 1000,
    )


def get(operation: str, at_least: str | None, ended_within_s: float) -> Request:
    """`GET /v1/operations/{id}`, which may wait for the operation's end."""
    headers = {} if at_least is None else {bodies.AT_LEAST: at_least}
    wait_s = min(int(ended_within_s), PREFER_WAIT_MAX_S)
    if wait_s:
        headers["Prefer"] = f"wait={wait_s}"
    return Request(method="GET", path=f"/v1/operations/{operation}", headers=headers, wait_s=wait_s)


def cancel(operation: str, reason: str) -> Request:
    """`POST /v1/operations/{id}:cancel`."""
    body = bodies.Cancel(reason=reason)
    return Request(method="POST", path=f"/v1/operations/{operation}:cancel", body=body)


def quoted(key: str) -> str:
    """The key as a structured-field string (draft 07).

    >>> quoted('order 7')
    '"order 7"'

    Raises:
        InvalidField: a header cannot carry it.
    """
    if not key.isascii() or not key.isprintable():
        raise InvalidField("Expected an idempotency key of printable ASCII characters")
    escaped = key.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def read(response: httpx.Response, kind: type[M]) -> M:
    """The body of a reply, or the exception of its problem."""
    if response.is_success:
        return kind.model_validate_json(response.content)
    after = response.headers.get("Retry-After", "")
    retry_after_s = float(after) if after.isdigit() else None
    try:
        problem = problems.Problem.model_validate_json(response.content)
    except ValidationError:
        told = f"Expected an answer of Evenhand, but got status {response.status_code}"
        # A proxy on the way; its 502, 503 and 504 say that nobody was reached.
        kind_of_trouble = Unreachable if response.is_server_error else EvenhandError
        raise kind_of_trouble(told, retry_after_s=retry_after_s) from None
    raise kind_of(problem.code)(
        problem.detail,
        operation=problem.operation,
        retry_at=problem.retry_at,
        retry_after_s=retry_after_s,
        budget=problem.budget,
    )


def again(within_s: float, error: Exception) -> bool | float:
    """Whether the same request may help within the time, and in how many seconds if known."""
    if not isinstance(error, EvenhandError):
        return False
    temporary = error.code is not None and codes.CODES[error.code].temporary
    if not temporary and not isinstance(error, Unreachable):
        return False
    after_s = error.retry_after_s
    return True if after_s is None else after_s < within_s and after_s


@contextmanager
def reached() -> Iterator[None]:
    """Inside, no answer is Unreachable; an address that is none is no matter of time."""
    try:
        yield
    except httpx.UnsupportedProtocol as error:
        raise EvenhandError("Expected an address of the API that begins with http://") from error
    except httpx.TransportError as error:
        raise Unreachable(f"Expected an answer, but {type(error).__name__}: {error}") from error


def connection(url: str | None, api_key: str | None) -> dict[str, Any]:
    """What a client of httpx is made of; None means the environment's value."""
    key = api_key or environ.get("EVENHAND_API_KEY")
    return {
        "base_url": url or environ.get("EVENHAND_API_URL") or DEFAULT_URL,
        "headers": {"Authorization": f"Bearer {key}"} if key else {},
    }


def _retrying(retry_s: float) -> Any:
    return stamina.retry_context(
        on=partial(again, retry_s),
        attempts=ATTEMPTS_MAX,
        timeout=retry_s,
        wait_max=RETRY_WAIT_MAX_S,
    )


class HttpTransport:
    """`Transport` over the API."""

    def __init__(self, url: str | None, api_key: str | None, *, retry_s: float) -> None:
        """Connects when first used; None means the environment's value."""
        self._client = httpx.Client(**connection(url, api_key))
        self.retry_s = retry_s
        """How long a request is sent again."""

    def ask(self, request: Request, kind: type[M], *, retry_s: float | None = None) -> M:
        """Send until answered, at most `retry_s`; raises the last trouble."""
        for attempt in _retrying(self.retry_s if retry_s is None else retry_s):
            with attempt, reached():
                return read(self._client.request(**request.arguments()), kind)
        raise AssertionError("Expected an answer or an exception")

    def submit(self, submission: Submission) -> bodies.Submitted:
        """Durable when it returns, and decided if that was waited for."""
        return self.ask(submit(submission), bodies.Submitted)

    def get(
        self, operation: str, *, at_least: str | None, wait_s: float, ended_within_s: float = 0.0
    ) -> bodies.Operation:
        """The operation, as of `at_least` (a position or an input) or later.

        It waits for its end up to `ended_within_s`, but may answer before.
        """
        return self.ask(get(operation, at_least, ended_within_s), bodies.Operation, retry_s=wait_s)

    def cancel(self, operation: str, *, reason: str) -> str:
        """Durable when it returns. Returns: the input, for `at_least`."""
        return self.ask(cancel(operation, reason), bodies.Cancelled).input

    def close(self) -> None:
        """Let go of connections."""
        self._client.close()


class AsyncHttpTransport:
    """`AsyncTransport` over the API."""

    def __init__(self, url: str | None, api_key: str | None, *, retry_s: float) -> None:
        """Connects when first used; None means the environment's value."""
        self._client = httpx.AsyncClient(**connection(url, api_key))
        self.retry_s = retry_s
        """How long a request is sent again."""

    async def ask(self, request: Request, kind: type[M], *, retry_s: float | None = None) -> M:
        """Send until answered, at most `retry_s`; raises the last trouble."""
        attempts: AsyncIterator[Any] = _retrying(self.retry_s if retry_s is None else retry_s)
        async for attempt in attempts:
            with attempt, reached():
                return read(await self._client.request(**request.arguments()), kind)
        raise AssertionError("Expected an answer or an exception")

    async def submit(self, submission: Submission) -> bodies.Submitted:
        """Durable when it returns, and decided if that was waited for."""
        return await self.ask(submit(submission), bodies.Submitted)

    async def get(
        self, operation: str, *, at_least: str | None, wait_s: float, ended_within_s: float = 0.0
    ) -> bodies.Operation:
        """The operation, as of `at_least` (a position or an input) or later.

        It waits for its end up to `ended_within_s`, but may answer before.
        """
        return await self.ask(
            get(operation, at_least, ended_within_s), bodies.Operation, retry_s=wait_s
        )

    async def cancel(self, operation: str, *, reason: str) -> str:
        """Durable when it returns. Returns: the input, for `at_least`."""
        return (await self.ask(cancel(operation, reason), bodies.Cancelled)).input

    async def close(self) -> None:
        """Let go of connections."""
        await self._client.aclose()
