"""The demo's last words: what the figures are, and what they do not say."""

from pathlib import Path

from rich.console import Console
from rich.table import Table

from evenhand.dev.summary import Summary

_HONEST = (
    "Weights move waits, they do not remove them: the budget is the same under every policy. "
    "code weighs 2, so its share is held against the chats, and a chat may wait longer here than "
    "in one common queue; what no tenant can do is take another's share. "
    "The provider is ours, and all clocks and programs are on one machine."
)


def report(summary: Summary, out: Path, console: Console) -> None:
    """Print the summary and where its files are."""
    tenants = Table(title="what each tenant got, and what FIFO would have given", expand=True)
    tenants.add_column("tenant")
    headings = ("weight", "share", "entitled", "wait p50", "p95", "FIFO wait p50", "p95")
    for heading in headings:
        tenants.add_column(heading, justify="right")
    for name, tenant in summary.tenants.items():
        waits = (tenant.wait_ms_p50, tenant.wait_ms_p95)
        fifo = (tenant.fifo_wait_ms_p50, tenant.fifo_wait_ms_p95)
        tenants.add_row(
            name,
            str(tenant.weight),
            f"{tenant.share:.1%}",
            f"{tenant.entitled:.1%}",
            *(f"{wait_ms / 1000:.1f} s" for wait_ms in (*waits, *fifo)),
        )
    console.print(tenants)
    ended = f"settled {summary.settled:,}, lost {summary.lost}, doubled {summary.doubled}"
    asked = f"{summary.submissions:,} submissions: admitted {summary.admitted:,}"
    refused = f"rejected {summary.rejected}, expired {summary.expired}"
    console.print(f"{asked}, {refused}, {ended}.")
    over = summary.overshoot
    console.print(
        f"The provider's record: {over.calls} calls and {over.tokens:,} tokens above a limit; its "
        f"scarcest budget was {summary.budget_used:.1%} used while all tenants were backlogged "
        f"({summary.backlogged_ms / 1000:.0f} s).",
        style="bold green" if not (over.calls or over.tokens) else "bold red",
    )
    if summary.first_grant_after_kill_ms is not None:
        console.print(f"First grant after the kill: {summary.first_grant_after_kill_ms:,} ms.")
    for finding in summary.audit:
        console.print(f"audit: {finding}", style="bold red")
    if not summary.audit:
        console.print("The audit found nothing.")
    console.print(_HONEST)
    console.print(f"Look at {out / 'shares.svg'} and {out / 'summary.json'}.")
