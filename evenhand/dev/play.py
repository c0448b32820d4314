"""The recorded requests that the demo plays: who asks when, for how many tokens."""

import csv
import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import NamedTuple

_FOLDER = Path(__file__).parent / "traces"
_CODE = _FOLDER / "azure_llm_2023_code.csv.gz"
_CHAT = _FOLDER / "azure_llm_2023_conversation.csv.gz"

TENANTS = ("code", "chat-a", "chat-b")
"""The traces carry no tenants: `code` is the first file, the chats are odd and even rows."""

OUTPUT_TOKENS_MAX = {"code": 2000, "chat-a": 1000, "chat-b": 1000}
"""Output ceilings: what a caller states before it knows how long the answer will be."""


class Prompt(NamedTuple):
    """What the provider would read and write for one recorded request."""

    prompt_tokens: int
    generated_tokens: int

    def service_ms(self, speed_up: int) -> int:
        """How long the call takes: 300 ms and 20 ms a generated token, divided by the speed-up."""
        return (300 + 20 * self.generated_tokens) // speed_up


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """One recorded request, placed in the play."""

    at_ms: float
    """After the start of the play, speed-up applied."""
    tenant: str
    payload_ref: str
    """Names the row, so that the provider can look the prompt up by itself."""
    prompt: Prompt


def prompts() -> dict[str, Prompt]:
    """Every recorded request by its reference."""
    return {reference: prompt for _at, _tenant, reference, prompt in _rows()}


def arrivals(*, first_minute: float, minutes: float, speed_up: int) -> list[Arrival]:
    """The requests of some minutes of the traces, in order of arrival.

    Args:
        first_minute: counted from the earliest row of both files.
        minutes: of trace time, so the play lasts `minutes / speed_up`.
        speed_up: divides all times.
    """
    rows = sorted(_rows())
    origin = rows[0][0]
    first = first_minute * 60_000
    last = first + minutes * 60_000
    return [
        Arrival(at_ms=(at - origin - first) / speed_up, tenant=tenant, payload_ref=ref, prompt=it)
        for at, tenant, ref, it in rows
        if first <= at - origin < last
    ]


def _rows() -> Iterator[tuple[float, str, str, Prompt]]:
    code = ((at, "code", f"code/{n}", it) for n, (at, it) in enumerate(_read(_CODE)))
    chat = (
        (at, "chat-b" if n % 2 else "chat-a", f"chat/{n}", it)
        for n, (at, it) in enumerate(_read(_CHAT))
    )
    return chain(code, chat)


def _read(path: Path) -> Iterator[tuple[float, Prompt]]:
    with gzip.open(path, "rt", newline="") as lines:
        for row in csv.DictReader(lines):
            instant = datetime.fromisoformat(row["TIMESTAMP"]).replace(tzinfo=UTC)
            prompt = Prompt(int(row["ContextTokens"]), int(row["GeneratedTokens"]))
            yield instant.timestamp() * 1000, prompt
