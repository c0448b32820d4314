"""`evenhand journal`: look at the entries of a cell, and decide them again."""

import json
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from evenhand.audit._kafka import KafkaLogs
from evenhand.cli.entries import line, line_json
from evenhand.cli.recorded import LoggedInputs
from evenhand.cli.redecide import redecider
from projections.accepted import Judged, judged
from projections.kafka import KafkaEntries
from projections.replay import Verification, verify
from schemas.topics import INPUT_TOPICS, Topic, full_name
from streams.shell.settings import Settings

DIFFERENT = 7
"""Exit code: a check found a difference."""
TAIL_ENTRIES = 10
"""Records shown when no offset is given."""

app = typer.Typer(help="Entries of a cell's journal.", no_args_is_help=True)

OutputOption = Annotated[str, typer.Option(help="table or json")]


@app.command("verify")
def verify_command(*, output: OutputOption = "table") -> None:
    """Decide every entry again from the recorded inputs; exit with 7 at a difference.

    Example: evenhand journal verify
    """
    settings = Settings()
    with _entries(settings) as entries, _logs(settings) as logs:
        partitions = {topic: logs.partitions(topic) for topic in INPUT_TOPICS}
        with redecider(partitions) as decider:
            records = judged(entries, end=entries.end())
            outcome = verify(records, decider, LoggedInputs(logs), cell=settings.cell)
    typer.echo(json.dumps(_as_json(outcome)) if output == "json" else _table(outcome))
    if outcome.difference is not None:
        typer.echo(f"first difference at {outcome.difference.position}", err=True)
        raise typer.Exit(DIFFERENT)


@app.command()
def tail(
    *,
    from_: Annotated[
        int | None, typer.Option("--from", min=0, help="First offset shown; else the last ten.")
    ] = None,
    follow: Annotated[bool, typer.Option(help="Wait for more until interrupted.")] = False,
    output: OutputOption = "table",
) -> None:
    """Show accepted entries with their events, and noise, one line each.

    The journal is read from its start, since only that shows which records are entries.

    Example: evenhand journal tail --from 0
    """
    settings = Settings()
    show = line_json if output == "json" else line
    with _entries(settings) as entries:
        end = entries.end() or 0
        newest: deque[Judged] = deque(maxlen=TAIL_ENTRIES)
        for record in judged(entries, end=None if follow else end):
            if record.offset >= (end if from_ is None else from_):
                typer.echo(show(settings.cell, record))
            elif from_ is None:
                newest.append(record)
            if from_ is None and record.offset == end - 1:
                for each in newest:
                    typer.echo(show(settings.cell, each))


@contextmanager
def _entries(settings: Settings) -> Iterator[KafkaEntries]:
    topic = full_name(settings.prefix, settings.cell, Topic.JOURNAL)
    entries = KafkaEntries(bootstrap=settings.bootstrap, topic=topic)
    try:
        yield entries
    finally:
        entries.close()


@contextmanager
def _logs(settings: Settings) -> Iterator[KafkaLogs]:
    logs = KafkaLogs(bootstrap=settings.bootstrap, prefix=settings.prefix, cell=settings.cell)
    try:
        yield logs
    finally:
        logs.close()


def _as_json(outcome: Verification) -> dict[str, Any]:
    difference = outcome.difference
    counts = ("decided", "folded", "noise", "events", "other_version", "without_inputs")
    return {
        "through": None if outcome.through is None else str(outcome.through),
        **{name: getattr(outcome, name) for name in counts},
        "equal": difference is None,
        "difference": None
        if difference is None
        else {"position": str(difference.position), "detail": difference.detail},
    }


def _table(outcome: Verification) -> str:
    lines = [
        f"through          {outcome.through or 'nothing'}",
        f"decided again    {outcome.decided} entries with {outcome.events} events",
        f"folded           {outcome.folded} takeovers",
        f"not compared     {outcome.other_version} entries of another core version",
        f"                 {outcome.without_inputs} entries whose inputs are gone",
        f"noise            {outcome.noise}",
    ]
    found = outcome.difference
    lines.append(f"difference       {found.position}: {found.detail}" if found else "equal")
    return "\n".join(lines)
