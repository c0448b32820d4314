"""Deliveries to one member as a long poll and as server-sent events, both resumed by position."""

from collections.abc import AsyncIterator

from sse_starlette import EventSourceResponse, ServerSentEvent

from projections.deliveries import Delivered, DeliveriesGone, Told
from schemas import member_bodies as m
from schemas.codes import Code
from schemas.ids import MemberId
from schemas.journal import Position
from schemas.plain import plain

from .ports import Views
from .problems import Refused

EVENT_STREAM = "text/event-stream"
QUIET_MS_MAX = 15_000
"""So often a stream sends a comment, lest a proxy on the way ends it, and where it is."""


async def read(views: Views, member: MemberId, begin: str | None, wait_ms: int) -> m.Deliveries:
    """What the member has not heard; waits only if that is nothing.

    Raises:
        Refused: it is no position, or older than what is kept.
    """
    found = await _next(views, member, _position(views, begin), wait_ms)
    items = [
        m.Delivery(position=str(at), type=type(event).__name__, event=plain(event))
        for at, event in found.items
    ]
    return m.Deliveries(items=items, next=str(found.next))


async def stream(views: Views, member: MemberId, begin: str | None) -> EventSourceResponse:
    """The same without an end; `id` is the position to resume from.

    Raises:
        Refused: as `read`.
    """
    first = await _next(views, member, _position(views, begin), 0)
    return EventSourceResponse(_events(views, member, first), ping=QUIET_MS_MAX // 1000)


async def _events(
    views: Views, member: MemberId, found: Delivered
) -> AsyncIterator[ServerSentEvent]:
    while True:
        for told in found.items:
            yield _event(told)
        if not found.items:
            # No event for the reader, but it resumes from here: nothing before is its own.
            yield ServerSentEvent(id=str(found.next))
        try:
            found = await views.deliveries(member, found.next, QUIET_MS_MAX)
        except DeliveriesGone:
            return  # the client asks again from its last id, and is told so


def _event(told: Told) -> ServerSentEvent:
    body = m.Delivery(
        position=str(told.position), type=type(told.event).__name__, event=plain(told.event)
    )
    return ServerSentEvent(body.model_dump_json(), event=body.type, id=body.position)


async def _next(views: Views, member: MemberId, after: Position | None, wait_ms: int) -> Delivered:
    try:
        return await views.deliveries(member, after, wait_ms)
    except DeliveriesGone as gone:
        raise Refused(Code.DELIVERIES_GONE, str(gone)) from gone


def _position(views: Views, text: str | None) -> Position | None:
    if text is None:
        return None
    try:
        position = Position.parse(text)
    except ValueError as error:
        raise Refused(
            Code.MALFORMED, f"Expected a position of a delivery, but got {text[:100]!r}"
        ) from error
    cell = views.progress().position.cell
    if position.cell != cell:
        raise Refused(Code.MALFORMED, f"Expected a position of cell {cell}, but got {text[:100]!r}")
    return position
