"""`evenhand audit`: check a cell's topics without the code that wrote them."""

from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli.output import Exit, OutputOption, leave, show_one


def audit(
    *,
    strict: Annotated[
        bool, typer.Option("--strict", help="Also find what is not yet decided or published.")
    ] = False,
    provider_record: Annotated[
        Path | None,
        typer.Option(
            help="The provider's record of calls, one JSON object a line.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    output: OutputOption = None,
) -> None:
    """Check every topic of the cell against every promise; the exit code is 7 at a finding.

    Example:
    evenhand audit --output json
    """
    from evenhand.audit._kafka import partition_of  # noqa: PLC0415 - light start
    from evenhand.audit.auditor import audit as judge  # noqa: PLC0415
    from evenhand.audit.logs import LogSilent, LogTrimmed  # noqa: PLC0415
    from evenhand.audit.provider import RecordUnreadable  # noqa: PLC0415
    from evenhand.cli.replayed import logs_of  # noqa: PLC0415
    from evenhand.cli.settings import checked  # noqa: PLC0415
    from streams.shell.settings import Settings  # noqa: PLC0415

    settings = checked(Settings)
    record = None if provider_record is None else provider_record.read_text().splitlines()
    try:
        with logs_of(settings) as logs:
            found = judge(
                logs,
                settings.cell,
                partition_of=partition_of,
                strict=strict,
                provider_record=record,
            )
    except LogSilent as error:
        leave(Exit.TRY_LATER, str(error))
    except LogTrimmed as error:
        leave(Exit.ERROR, str(error))
    except RecordUnreadable as error:
        leave(Exit.USAGE, str(error))
    show_one(found.as_json(), output)
    if found.first is not None:
        first = found.first
        leave(Exit.DIFFERENCE, f"First at {first.position}: {first.check}: {first.detail}")
