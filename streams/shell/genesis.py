"""How a cell begins: by one explicit entry at the start of a fresh journal, and never again.

An owner never writes this entry. A journal that was recreated under a running cell looks empty and
whole, and whoever began it anew by himself would repeat every call (journal.md section 1).
"""

from collections.abc import Callable, Sequence

from schemas.codec import decode, encode
from schemas.events import CellBegan
from schemas.ids import CellId, OwnerId
from schemas.inputs import TopicIdentity
from schemas.journal import Chain, Entry, EntryEvent, Pulse
from schemas.units import Millis
from streams.core.decider import CORE_VERSION, genesis
from streams.shell.journal import AppendFailed, Journal, JournalError, JournalTrimmed, Writer
from streams.shell.restore import GENESIS_HASH, entry_in

ANSWER_WAIT_MS = 10_000
"""An operator's command may wait longer than the loop does."""
ASK_TRIES = 20
"""One question gives up after half a second, as the loop needs it; new topics on a busy broker take
longer to answer."""


class CellDiffers(JournalError):
    """The journal began with other topics or another generation. Nothing is written: give the cell
    another name, or recreate all its topics and give a higher generation on purpose.
    """  # noqa: D205 - one sentence, which is the message


def begin(
    journal: Journal,
    pulse: Writer,
    *,
    cell: CellId,
    topics: Sequence[TopicIdentity],
    generation: int,
    owner: OwnerId,
) -> bool:
    """Begin the cell, unless it has begun already with these topics and this generation.

    Args:
        journal: of the cell.
        pulse: of the pulse topic; the append time of a record there is the entry's time.
        cell: its name.
        topics: all of its topics, as the cluster knows them.
        generation: 1, or higher for a deliberate new beginning.
        owner: names the command, which owns nothing afterwards.

    Returns: whether it has begun now. Blocks until the broker answers.

    Raises:
        CellDiffers: it began otherwise.
        JournalTrimmed: the journal does not begin at 0.
        AppendFailed: no answer; ask again, which is harmless.
    """
    if began(journal, topics=topics, generation=generation):
        return False
    at_ms = _append(pulse, encode(Pulse(epoch=0, height=-1, owner=owner, time_ms=Millis(0))))[1]
    entry = Entry(
        generation=generation,
        previous=-1,
        height=0,
        epoch=1,
        owner=owner,
        takeover=True,
        time_ms=Millis(at_ms),
        clock_shift_ms=Millis(0),
        published=-1,
        core_version=CORE_VERSION,
        state_hash=GENESIS_HASH,
        inputs=(),
        events=tuple(
            EntryEvent(cause=one.cause, body=encode(one.event)) for one in genesis(cell, topics)
        ),
    )
    writer = journal.writer()
    try:
        offset = _append(writer, encode(entry))[0]
    finally:
        writer.close()
    # Another command may have been faster; then the journal has that one's entry at 0.
    return offset == 0 or not began(journal, topics=topics, generation=generation)


def began(journal: Journal, *, topics: Sequence[TopicIdentity], generation: int | None) -> bool:
    """Whether the journal holds the beginning of this cell; False if it is empty.

    Args:
        journal: of the cell.
        topics: all of its topics, as the cluster knows them now.
        generation: None if any will do.

    Raises:
        CellDiffers: it holds another beginning, or none at its start.
        JournalTrimmed: it does not begin at 0.
        AppendFailed: the broker did not answer.
    """
    start, end = _answer(journal.start), _answer(journal.end)
    if start is None or end is None:
        raise AppendFailed("Expected where the journal begins and ends, but nobody answered")
    if start > 0:
        raise JournalTrimmed(f"Expected a journal that begins at 0, but it begins at {start}")
    if end == 0:
        return False
    reader = journal.reader(0)
    try:
        records = reader.read(1, ANSWER_WAIT_MS)
    finally:
        reader.close()
    entry = entry_in(records[0]) if records else None
    if entry is None or not Chain().accept(0, entry):
        raise CellDiffers("Expected a cell's first entry at 0, but another record is there")
    if generation is not None and entry.generation != generation:
        raise CellDiffers(f"Expected generation {generation}, but it is {entry.generation}")
    event = decode(entry.events[0].body)
    if not isinstance(event, CellBegan):
        raise CellDiffers("Expected a cell's first entry at 0, but it tells of no beginning")
    if event.topics != tuple(topics):
        others = {topic.name for topic in {*event.topics} ^ {*topics}}
        raise CellDiffers(
            "Expected the topics that the cell began with, "
            f"but these are missing or were made again: {', '.join(sorted(others))}"
        )
    return True


def _append(writer: Writer, value: bytes) -> tuple[int, int]:
    writer.send(value)
    landing = writer.landed(ANSWER_WAIT_MS)
    if landing is None:
        raise AppendFailed(f"Expected an answer within {ANSWER_WAIT_MS} ms, but none came")
    return landing


def _answer(ask: Callable[[], int | None]) -> int | None:
    """The first answer; None if there is none in so many tries."""
    return next((answer for _ in range(ASK_TRIES) if (answer := ask()) is not None), None)
