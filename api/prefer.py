"""How long a client prefers to wait: `Prefer: wait=S` (RFC 7240)."""

from typing import Annotated

from fastapi import Depends, Header, Response

from schemas.codes import Code

from .problems import Refused

WAIT_S_MAX = 30
"""Longer ones are cut to this: a proxy on the way ends what is silent."""


async def _wait_ms(
    prefer: Annotated[
        str | None, Header(description="`wait=S`: how many seconds to wait for the answer.")
    ] = None,
) -> int | None:
    if prefer is None:
        return None
    for preference in prefer.split(","):
        name, _, value = preference.partition(";")[0].partition("=")
        if name.strip().lower() == "wait":
            return _millis(value.strip())
    return None


def _millis(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise Refused(
            Code.MALFORMED, f"Expected `Prefer: wait=` whole seconds, but got {text[:40]!r}"
        )
    return min(int(text[:9]), WAIT_S_MAX) * 1000


def applied(response: Response, wait_ms: int) -> None:
    """Say that the preference was honoured, and how far (RFC 7240)."""
    response.headers["Preference-Applied"] = f"wait={wait_ms // 1000}"


WaitMs = Annotated[int | None, Depends(_wait_ms)]
"""Milliseconds that the client would wait at most; None if it does not say."""
