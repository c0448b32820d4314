"""What every route needs before it may answer: who asks, in which role, and views to ask.

Everything here is a coroutine: what is not, FastAPI sends through a thread, which costs more.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Header, Request, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from projections.queries import Queries
from projections.reflected import TakenInput, Wanted
from schemas.bodies import AT_LEAST, POSITION, Role
from schemas.codes import Code
from schemas.journal import Position
from schemas.topics import INPUT_TOPICS

from .auth import Keys, Principal
from .ports import Sender, Views
from .problems import Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """How long requests may wait, in milliseconds."""

    admitted_ms: int = 250
    """For the admission decision, when the client names no time of its own."""
    at_least_ms: int = 2_000
    """Until the views reflect what the client has seen or written."""
    decided_ms: int = 2_000
    """For what the owner decides on a member's word, when the client does not say."""
    granted_ms: int = 500
    """For permission, when the client does not say."""


@dataclass(frozen=True, slots=True)
class Door:
    """The ports of one application, and the keys whose first request is still being decided."""

    views: Views
    sender: Sender
    keys: Keys
    waits: Waits
    deciding: set[bytes] = field(default_factory=set)


async def _door(request: Request) -> Door:
    door: Door = request.app.state.door
    return door


ADoor = Annotated[Door, Depends(_door)]
_bearer = HTTPBearer(auto_error=False, description="An API key, `eh_<id>_<secret>`.")


async def _principal(
    door: ADoor, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
) -> Principal:
    principal = None if credentials is None else door.keys.principal(credentials.credentials)
    if principal is None:
        raise Refused(
            Code.UNAUTHENTICATED,
            "Expected a valid key as `Authorization: Bearer eh_...`, but there is none",
            headers={"WWW-Authenticate": "Bearer"},
        )
    return principal


def allow(*roles: Role) -> Callable[[Principal], Awaitable[Principal]]:
    """A dependency that lets only these roles pass."""

    async def allowed(principal: Annotated[Principal, Depends(_principal)]) -> Principal:
        if principal.role not in roles:
            raise Refused(
                Code.FORBIDDEN,
                f"Expected role {' or '.join(roles)}, but the key has {principal.role}",
            )
        return principal

    return allowed


READERS = (Role.TENANT, Role.OPERATOR, Role.AUDITOR)
AReader = Annotated[Principal, Depends(allow(*READERS))]
ASubmitter = Annotated[Principal, Depends(allow(Role.TENANT))]
AMember = Annotated[Principal, Depends(allow(Role.WORKER, Role.TENANT))]
"""Whose processes may be members: of pools, or of pool `self`."""
AnOperator = Annotated[Principal, Depends(allow(Role.OPERATOR))]
OVERSEERS = Depends(allow(Role.OPERATOR, Role.AUDITOR))
"""For routes that tell of everybody."""
ACanceller = Annotated[Principal, Depends(allow(Role.TENANT, Role.WORKER, Role.OPERATOR))]
"""A worker cancels turns of its own only."""


def _wanted(text: str) -> Wanted:
    """A position, or the input that a write was answered with."""
    parts = text.split(":")
    try:
        if len(parts) == len(TakenInput._fields) and parts[0] in INPUT_TOPICS:
            topic = [str(name) for name in INPUT_TOPICS].index(parts[0])
            return TakenInput(topic, int(parts[1]), int(parts[2]))
        return Position.parse(text)
    except ValueError as error:
        raise Refused(
            Code.MALFORMED,
            f"Expected {AT_LEAST} to be a position or an input, but got {text!r}",
        ) from error


async def _asked(
    door: ADoor,
    response: Response,
    at_least: Annotated[str | None, Header(alias=AT_LEAST)] = None,
) -> Queries:
    """The views as they are, or as they are once they reflect what the client demands (R130)."""
    progress = door.views.progress()
    if not progress.ready:
        raise Refused(
            Code.RESTORING,
            f"Expected the journal up to {progress.end} to be read, but it is up to "
            f"{progress.offset}",
        )
    if at_least is not None:
        wanted = _wanted(at_least)
        if isinstance(wanted, Position) and wanted.cell != progress.position.cell:
            raise Refused(
                Code.MALFORMED,
                f"Expected a position of cell {progress.position.cell}, but got {at_least!r}",
            )
        if not await door.views.reach(wanted, door.waits.at_least_ms):
            raise Refused(Code.BEHIND, f"Expected to reflect {at_least} in time, but do not yet")
    asked = door.views.ask()
    response.headers[POSITION] = str(asked.position)
    return asked


Asked = Annotated[Queries, Depends(_asked)]
