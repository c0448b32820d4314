"""How an entry names the inputs it took, and the public copies of what it decided."""

from collections.abc import Sequence

from schemas.codec import decode
from schemas.envelope import Envelopes
from schemas.events import Event
from schemas.ids import CellId
from schemas.journal import CAUSE_DISPATCH, CAUSE_TIME, Entry, InputRun
from schemas.topics import INPUT_TOPICS, full_name, routes
from streams.core.outcomes import Taken
from streams.shell.outbox import Outgoing


def runs_of(taken: Sequence[Taken]) -> tuple[InputRun, ...]:
    """Records in the order taken, as runs without holes: a hole or another partition begins one.

    >>> from streams.core.outcomes import Source, Unreadable
    >>> bad = Unreadable("", "")
    >>> [(r.partition, r.first, r.next) for r in runs_of(
    ...     [Taken(Source(0, p, o), bad) for p, o in ((1, 4), (1, 5), (1, 9), (2, 10))])]
    [(1, 4, 6), (1, 9, 10), (2, 10, 11)]
    """
    runs: list[list[int]] = []
    for record in taken:
        at = record.source
        if runs and runs[-1][:2] == [at.topic, at.partition] and runs[-1][3] == at.offset:
            runs[-1][3] = at.offset + 1
        else:
            runs.append([at.topic, at.partition, at.offset, at.offset + 1])
    return tuple(InputRun(topic=t, partition=p, first=f, next=n) for t, p, f, n in runs)


def copies(
    entry: Entry, offset: int, *, cell: CellId, prefix: str, events: Sequence[Event] | None = None
) -> list[Outgoing]:
    """All public records of the accepted entry at `offset`, in journal order.

    Args:
        entry: its event bytes are the values; nothing is encoded again.
        offset: where the journal has it.
        cell: whose entry.
        prefix: first part of the topics' names, for causes.
        events: the entry's events if the caller still has them; else they are decoded.
    """
    if events is None:
        events = [decode(event.body) for event in entry.events]
    causes = _causes(entry, cell, prefix)
    envelopes = Envelopes(cell, entry.generation, offset)
    outgoing = []
    for index, (recorded, event) in enumerate(zip(entry.events, events, strict=True)):
        headers = envelopes.headers(index, kind=type(event), cause=causes[recorded.cause])
        for topic, key in routes(event):
            outgoing.append(Outgoing(topic, key, recorded.body, headers))
    return outgoing


def _causes(entry: Entry, cell: CellId, prefix: str) -> dict[int, str]:
    """What the numbers in `EntryEvent.cause` mean: ordinals over all runs, time, dispatch."""
    causes = {CAUSE_TIME: "time", CAUSE_DISPATCH: "dispatch"}
    ordinal = 0
    for run in entry.inputs:
        name = full_name(prefix, cell, INPUT_TOPICS[run.topic])
        for offset in range(run.first, run.next):
            causes[ordinal] = f"{name}:{run.partition}:{offset}"
            ordinal += 1
    return causes
