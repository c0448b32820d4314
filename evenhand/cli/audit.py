"""`evenhand audit`: check a cell's topics without the code that wrote them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from evenhand.audit._kafka import KafkaLogs, partition_of
from evenhand.audit.auditor import audit as audit_logs
from evenhand.audit.findings import Findings
from streams.shell.settings import Settings

DIFFERENT = 7
"""Exit code: a check found a difference."""
SHOWN_MAX = 20
"""Findings that the table shows; JSON has them all."""


def audit(
    *,
    strict: Annotated[
        bool, typer.Option(help="Also find what is not yet decided or not yet published.")
    ] = False,
    provider_record: Annotated[
        Path | None,
        typer.Option(help="The provider's record of calls, one JSON object a line.", exists=True),
    ] = None,
    output: Annotated[str, typer.Option(help="table or json")] = "table",
) -> None:
    """Check every topic of the cell against every promise; exit with 7 at a finding.

    Example: evenhand audit --output json
    """
    settings = Settings()
    logs = KafkaLogs(bootstrap=settings.bootstrap, prefix=settings.prefix, cell=settings.cell)
    record = None if provider_record is None else provider_record.read_text().splitlines()
    try:
        findings = audit_logs(
            logs,
            settings.cell,
            partition_of=partition_of,
            strict=strict,
            provider_record=record,
        )
    finally:
        logs.close()
    typer.echo(json.dumps(findings.as_json()) if output == "json" else _table(findings))
    if findings.first is not None:
        typer.echo(f"first finding at {findings.first.position}", err=True)
        raise typer.Exit(DIFFERENT)


def _table(findings: Findings) -> str:
    """What was counted, then the findings in journal order."""
    lines = [
        f"cell           {findings.cell}, through {findings.through or 'nothing'}",
        f"entries        {findings.entries} with {findings.events} events; {findings.noise} noise",
        f"submissions    {_counted(findings.submissions)}",
        f"operations     {_counted(findings.operations)}",
        f"reservations   {_counted(findings.reservations)}",
        f"pending        {_counted(findings.pending)}",
        f"findings       {findings.found}",
    ]
    shown = findings.findings[:SHOWN_MAX]
    return "\n".join([*lines, *(f"{one.position}  {one.check}: {one.detail}" for one in shown)])


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items()) or "none"
