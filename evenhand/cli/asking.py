"""Questions to the API: where it is and the key come from EVENHAND_API_URL and EVENHAND_API_KEY."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from pydantic import BaseModel

from evenhand._http import HttpTransport, Request

PAGE_MAX: Final = 100
RETRY_S: Final = 10.0
"""A person waits; a script that wants more repeats the command."""
M = TypeVar("M", bound=BaseModel)


@contextmanager
def api() -> Iterator[HttpTransport]:
    """The API as the environment names it."""
    transport = HttpTransport(None, None, retry_s=RETRY_S)
    try:
        yield transport
    finally:
        transport.close()


def pages(path: str, kind: type[BaseModel], *, limit: int, **params: str | int | None) -> list[Any]:
    """At most `limit` items of a list whose page is of this kind, page after page."""
    rows: list[Any] = []
    cursor: str | None = None
    while len(rows) < limit:
        size = min(limit - len(rows), PAGE_MAX)
        page: Any = ask(path, kind, limit=size, cursor=cursor, **params)
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
