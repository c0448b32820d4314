"""Pages of lists: whose things are on them, how many, and where the next one begins."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from typing import Annotated

from fastapi import Query

from schemas.codes import Code

from .auth import Principal
from .problems import Refused, not_found

PAGE_MAX = 100
PAGE_DEFAULT = 50

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
        return None if text is None else urlsafe_b64decode(text.encode())
    except (NotBase64, ValueError) as error:
        raise Refused(
            Code.MALFORMED, "Expected a cursor from `next` of another page, but it is none"
        ) from error


def next_of(begin: bytes | None) -> str | None:
    """`next` of a page."""
    return None if begin is None else urlsafe_b64encode(begin).decode()
