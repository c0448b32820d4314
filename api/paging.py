"""Pages of lists: whose things are on them, how many, and where the next one begins."""

from base64 import b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from typing import Annotated

from fastapi import Query

from projections.attempts import SlotAnswer, UnknownAnswer
from schemas.codes import Code

from .auth import Principal
from .problems import Refused, not_found

PAGE_MAX = 100
PAGE_DEFAULT = 50
SINCE_BYTES = 8

Limit = Annotated[int, Query(ge=1, le=PAGE_MAX)]
TenantFilter = Annotated[str | None, Query(description="For operators and auditors.")]


def scope(asker: Principal, tenant: str | None) -> str | None:
    """Whose things are listed: None for everybody's.

    Raises:
        Refused: not found, for another tenant's.
    """
    if asker.sees_all:
        return tenant
    if tenant is not None and not asker.sees(tenant):
        raise not_found()
    return asker.tenant


def cursor(text: str | None) -> bytes | None:
    """Where a page begins, from `next` of the one before.

    Raises:
        Refused: malformed.
    """
    try:
        return None if text is None else b64decode(text, altchars=b"-_", validate=True)
    except (NotBase64, ValueError) as error:
        raise Refused(
            Code.MALFORMED, "Expected a cursor from `next` of another page, but it is none"
        ) from error


def age_cursor(text: str | None) -> tuple[int, bytes] | None:
    """As `cursor`, of lists by age: since when, and the key.

    Raises:
        Refused: malformed.
    """
    place = cursor(text)
    if place is None:
        return None
    return int.from_bytes(place[:SINCE_BYTES], "big"), place[SINCE_BYTES:]


def age_next(following: UnknownAnswer | SlotAnswer | None) -> str | None:
    """`next` of a page by age."""
    if following is None:
        return None
    return next_of(following.since_ms.to_bytes(SINCE_BYTES, "big") + following.key)


def next_of(begin: bytes | None) -> str | None:
    """`next` of a page."""
    return None if begin is None else urlsafe_b64encode(begin).decode()
