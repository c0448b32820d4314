"""One line for one record of the journal, for people or for programs."""

import json
from typing import Any

from projections.accepted import Judged
from projections.follower import sources_of
from schemas.codec import decode
from schemas.entry import Entry, EntryEvent
from schemas.ids import CellId
from schemas.journal import CAUSE_DISPATCH, CAUSE_TIME, Position
from schemas.topics import INPUT_TOPICS


def line(cell: CellId, record: Judged) -> str:
    """For people: position, header and the events by name."""
    entry = record.entry
    if entry is None:
        return f"{record.offset}  noise"
    taken = sum(run.next - run.first for run in entry.inputs)
    head = (
        f"{Position(cell, entry.generation, record.offset, 0)}  height {entry.height}  "
        f"epoch {entry.epoch}{' takeover' if entry.takeover else ''}  time {entry.time_ms}  "
        f"{taken} inputs"
    )
    return "  ".join([head, *(_event_line(recorded) for recorded in entry.events)])


def _event_line(recorded: EntryEvent) -> str:
    event = decode(recorded.body)
    operation = getattr(event, "operation", None)
    about = operation.hex()[:8] if operation else getattr(event, "member", None)
    name = type(event).__name__
    return f"{name}({about})" if about else name


def line_json(cell: CellId, record: Judged) -> str:
    """For programs: header, inputs and events in full, as one JSON object."""
    entry = record.entry
    if entry is None:
        return json.dumps({"offset": record.offset, "accepted": False})
    events = [
        {
            "type": type(event).__name__,
            "cause": _cause(entry, recorded.cause),
            **_plain(event),
        }
        for recorded in entry.events
        for event in (decode(recorded.body),)
    ]
    header = {
        name: value for name, value in _plain(entry).items() if name not in ("inputs", "events")
    }
    inputs = [
        f"{INPUT_TOPICS[run.topic]}:{run.partition}:{run.first}-{run.next - 1}"
        for run in entry.inputs
    ]
    position = str(Position(cell, entry.generation, record.offset, 0))
    about = {"position": position, "offset": record.offset, "accepted": True}
    return json.dumps({**about, **header, "inputs": inputs, "events": events})


def _cause(entry: Entry, cause: int) -> str:
    if cause in (CAUSE_TIME, CAUSE_DISPATCH):
        return "time" if cause == CAUSE_TIME else "dispatch"
    source = sources_of(entry.inputs)[cause]
    return f"{INPUT_TOPICS[source.topic]}:{source.partition}:{source.offset}"


def _plain(word: Any) -> Any:
    """A word as JSON has it: bytes as hex, nested words as objects."""
    if isinstance(word, bytes):
        return word.hex()
    if isinstance(word, tuple | list):
        return [_plain(each) for each in word]
    if hasattr(word, "__slots__"):
        return {name: _plain(getattr(word, name)) for name in word.__slots__}
    return word
