"""Questions to the API: where it is and the key come from EVENHAND_API_URL and EVENHAND_API_KEY."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol, TypeVar, cast

from pydantic import BaseModel

from evenhand._http import HttpTransport, Request

PAGE_MAX: Final = 100
RETRY_S: Final = 10.0
"""A person waits; a script that wants more repeats the command."""
M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@contextmanager
def api() -> Iterator[HttpTransport]:
    """The API as the environment names it."""
    transport = HttpTransport(None, None, retry_s=RETRY_S)
    try:
        yield transport
    finally:
        transport.close()


class Paged(Protocol[T_co]):
    """One page of a list."""

    @property
    def items(self) -> Sequence[T_co]:
        """What is on it."""
        ...

    @property
    def next(self) -> str | None:
        """Where the next one begins."""
        ...


def pages(
    path: str, kind: Callable[..., Paged[T]], *, limit: int, **params: str | int | None
) -> list[T]:
    """At most `limit` items of a list, page after page."""
    rows: list[T] = []
    cursor: str | None = None
    while len(rows) < limit:
        size = min(limit - len(rows), PAGE_MAX)
        page: Any = ask(path, cast("type[BaseModel]", kind), limit=size, cursor=cursor, **params)
        rows += page.items
        cursor = page.next
        if cursor is None:
            break
    return rows


def ask(path: str, kind: type[M], **params: str | int | None) -> M:
    """GET a path; parameters that are None are left out."""
    given = {name: value for name, value in params.items() if value is not None}
    with api() as transport:
        return transport.ask(Request(method="GET", path=path, params=given), kind)
