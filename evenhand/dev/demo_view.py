"""The live table of the demo: who waits and who is served, what binds, and the provider's word."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evenhand.dev.demo_cell import DOMAIN
from evenhand.dev.demo_programs import Programs
from evenhand.dev.play import TENANTS
from schemas import capacity_bodies


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the API and the provider said at one moment."""

    tenants: Mapping[str, capacity_bodies.Tenant]
    queues: Mapping[str, capacity_bodies.Queue | None]
    """Each tenant's only queue; None while it is empty."""
    dimensions: Sequence[capacity_bodies.DimensionUse]
    verdict: Mapping[str, Any]
    at: datetime

    @property
    def decided(self) -> int:
        """Submissions that the owner has answered."""
        return sum(tenant.offered for tenant in self.tenants.values())

    @property
    def unfinished(self) -> int:
        """Operations that wait or run."""
        return sum(
            tenant.waiting + tenant.parked + tenant.granted + tenant.started
            for tenant in self.tenants.values()
        )


def look(programs: Programs) -> Seen:
    """Ask everybody once.

    Raises:
        Unanswered: somebody did not answer in time.
    """
    found = {tenant.tenant: tenant for tenant in programs.tenants().items}
    queues = {name: next(iter(programs.queues(name).items), None) for name in TENANTS}
    levels = programs.budget().items
    return Seen(
        tenants={name: found[name] for name in TENANTS},
        queues=queues,
        dimensions=next(level.dimensions for level in levels if level.tenant is None),
        verdict=programs.judgement(),
        at=datetime.now(UTC),  # noqa: TID251 - shown to a person; decides nothing
    )


def drawn(seen: Seen, story: str) -> RenderableType:
    """The whole screen."""
    return Group(Text(story), _tenants(seen), _budget(seen), _verdict(seen.verdict))


def line(seen: Seen) -> str:
    """The screen in one line, for logs."""
    waiting = ", ".join(f"{name} {tenant.waiting}" for name, tenant in seen.tenants.items())
    verdict = "clean" if seen.verdict["clean"] else "OVERSHOOT"
    return f"waiting: {waiting}; calls {seen.verdict['calls']}; provider: {verdict}"


def _tenants(seen: Seen) -> Table:
    table = Table(title="tenants", title_justify="left", expand=True)
    table.add_column("tenant")
    for heading in ("weight", "waiting", "granted", "share", "due", "oldest wait"):
        table.add_column(heading, justify="right")
    cost = sum(tenant.cost_ns for tenant in seen.tenants.values())
    weights = sum(tenant.weight for tenant in seen.tenants.values())
    for name, tenant in seen.tenants.items():
        table.add_row(
            name,
            str(tenant.weight),
            str(tenant.waiting),
            str(tenant.grants),
            f"{tenant.cost_ns / cost:.1%}" if cost else "",
            f"{tenant.weight / weights:.1%}",
            _oldest(seen.queues[name], seen.at),
        )
    return table


def _oldest(queue: capacity_bodies.Queue | None, at: datetime) -> str:
    if queue is None or queue.head_admitted_at is None:
        return ""
    return f"{max(0.0, (at - queue.head_admitted_at).total_seconds()):.1f} s"


def _budget(seen: Seen) -> Table:
    table = Table(title=f"budget domain {DOMAIN}", title_justify="left", expand=True)
    table.add_column("dimension")
    for heading in ("counted", "limit", "used", "binds"):
        table.add_column(heading, justify="right")
    binding = {
        queue.deferred_on.dimension
        for queue in seen.queues.values()
        if queue is not None and queue.deferred_on is not None
    }
    for use in seen.dimensions:
        table.add_row(
            use.dimension,
            f"{use.counted:,}",
            f"{use.limit:,}",
            f"{use.counted / use.limit:.0%}",
            "<--" if use.dimension in binding else "",
        )
    return table


def _verdict(verdict: Mapping[str, Any]) -> Text:
    limits = verdict["limits"]
    peaks = ", ".join(
        f"{verdict[f'peak_{name}']:,} of {limits[name]:,} {name}"
        for name in ("requests", "tokens", "slots")
    )
    if verdict["clean"]:
        said = f"the provider: {verdict['calls']:,} calls, none above a limit. Fullest: {peaks}"
        return Text(said, style="bold green")
    over = f"{verdict['overshoot_calls']:,} above a limit, {verdict['repeats']:,} repeated"
    return Text(f"the provider: {verdict['calls']:,} calls, {over}. {peaks}", style="bold red")
