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
        typer.Option(help="The provider's record of calls, one JSON object a line.", exists=True),
    ] = None,
    output: OutputOption = None,
) -> None:
    """Check every topic of the cell against every promise; the exit code is 7 at a finding.

    Example:
    evenhand audit --output json
    """
    from evenhand.audit._kafka import KafkaLogs, partition_of  # noqa: PLC0415 - light start
    from evenhand.audit.auditor import audit as judge  # noqa: PLC0415
    from evenhand.audit.logs import LogSilent, LogTrimmed  # noqa: PLC0415
    from streams.shell.settings import Settings  # noqa: PLC0415

    settings = Settings()
    cell = settings.cell
    logs = KafkaLogs(bootstrap=settings.bootstrap, prefix=settings.prefix, cell=cell)
    try:
        record = None if provider_record is None else provider_record.read_text().splitlines()
        found = judge(logs, cell, partition_of=partition_of, strict=strict, provider_record=record)
    except LogSilent as error:
        leave(Exit.TRY_LATER, str(error))
    except LogTrimmed as error:
        leave(Exit.ERROR, str(error))
    finally:
        logs.close()
    show_one(found.as_json(), output)
    if found.first is not None:
        first = found.first
        leave(Exit.DIFFERENCE, f"First at {first.position}: {first.check}: {first.detail}")
