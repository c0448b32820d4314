"""`evenhand journal`: look at the entries of a cell, and decide them again."""

from collections import deque
from typing import Annotated

import typer

from evenhand.cli.output import Exit, Output, OutputOption, leave, show_one

TAIL_RECORDS = 10
"""Records shown when no offset is given."""

app = typer.Typer(no_args_is_help=True, help="The journal of a cell.")


@app.command("verify")
def verify(*, output: OutputOption = None) -> None:
    """Decide every entry again from the recorded inputs; the exit code is 7 at a difference.

    Example:
    evenhand journal verify
    """
    from evenhand.audit.logs import LogSilent, LogTrimmed  # noqa: PLC0415 - light start
    from evenhand.cli.replayed import replayed  # noqa: PLC0415
    from evenhand.cli.settings import checked  # noqa: PLC0415
    from projections.ports import FollowerHalted  # noqa: PLC0415
    from streams.shell.settings import Settings  # noqa: PLC0415

    try:
        outcome = replayed(checked(Settings))
    except LogSilent as error:
        leave(Exit.TRY_LATER, str(error))
    except (LogTrimmed, FollowerHalted) as error:
        leave(Exit.ERROR, str(error))
    show_one(outcome.as_json(), output)
    difference = outcome.difference
    if difference is not None:
        leave(Exit.DIFFERENCE, f"First at {difference.position}: {difference.detail}")


@app.command("tail")
def tail(
    *,
    from_: Annotated[
        int | None, typer.Option("--from", min=0, help="First offset shown; else the last ten.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Wait for more.")] = False,
    output: OutputOption = None,
) -> None:
    """Show entries with their events, and noise, one line each.

    The journal is read from its start, since only that shows which records are entries.

    Example:
    evenhand journal tail --from 0
    """
    from evenhand.cli.entries import line, line_json  # noqa: PLC0415 - light start
    from evenhand.cli.replayed import journal_of  # noqa: PLC0415
    from evenhand.cli.settings import checked  # noqa: PLC0415
    from projections.accepted import Judged, judged  # noqa: PLC0415
    from projections.ports import FollowerHalted  # noqa: PLC0415
    from streams.shell.settings import Settings  # noqa: PLC0415

    settings = checked(Settings)
    shown = line_json if output is Output.JSON else line
    with journal_of(settings) as entries:
        end = entries.end()
        if end is None:
            cell, at = settings.cell, settings.bootstrap
            leave(Exit.TRY_LATER, f"Expected the journal of cell {cell} at {at}, but none answers")
        newest: deque[Judged] = deque(maxlen=TAIL_RECORDS)
        try:
            for record in judged(entries, end=None if follow else end):
                if from_ is None and record.offset < end:
                    newest.append(record)
                    due = list(newest) if record.offset == end - 1 else []
                else:
                    due = [record] if record.offset >= (from_ or 0) else []
                for each in due:
                    typer.echo(shown(settings.cell, each))
        except FollowerHalted as error:
            leave(Exit.ERROR, str(error))
