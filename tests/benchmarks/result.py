"""One measured figure: its line in `results.jsonl`, its row in the table, and what it should be."""

import json
import os
import platform
import statistics
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path

from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table

from evenhand.dev.node import KAFKA_VERSION

WIDTH = 1_000
"""Rows are pasted as they are: none may be broken."""

REPOSITORY = Path(__file__).parents[2]

GOALS: Mapping[str, tuple[str, str]] = {
    "lifecycles": (">= 2,000", ""),
    "lifecycles-bare": (">= 3,000", ""),
    "core-us-lifecycle": ("<= 600", "<= 150, then 70"),
    "start-answer-p50": ("ratio <= 3", "ratio <= 1.5"),
    "start-answer-p99": ("", "ratio <= 1.5"),
    "fold": (">= 50,000", ">= 100 x the live rate"),
    "accept-p99": ("<= 300", ""),
    "heartbeat-1000": ("<= 3", ""),
    "leases-due-10000": ("value - floor <= 50", ""),
    "owner-memory": ("ratio <= 1.10", ""),
    "kill-to-grant-10000": ("<= 2,000", ""),
    "kill-to-grant-1000000": ("<= 2,000, as for 10,000", ""),
    "seed-211": ("ratio 1", ""),
    "token-budget-reserved-arrival": ("ratio >= 0.98", ""),
    "token-budget-reserved-completion": ("ratio >= 0.98", ""),
    "token-budget-actual-arrival": ("ratio >= 0.98", ""),
    "token-budget-actual-completion": ("ratio >= 0.98", ""),
    "token-budget-requests-arrival": ("ratio >= 0.98", ""),
    "token-budget-requests-completion": ("ratio >= 0.98", ""),
    "token-budget-slots": ("ratio >= 0.98", "ratio >= 0.99"),
    "overshoot": ("0", ""),
    "lag": ("<= 1", ""),
    "noisy-neighbour": ("<= 3,000", ""),
    "scale-tenants-100000": ("ratio <= 3", ""),
    "scale-tenants-1000000": ("ratio <= 3", ""),
    "core": (">= 30,000", ""),
    "bulk-run": ("ratio <= 1.5", ""),
    **{
        f"slot-gap-{slots}-{service_ms}ms{standing}": ("ratio >= 0.99", aim)
        for slots in (8, 64)
        for service_ms in (10, 20, 50, 100, 1_000)
        for standing, least in (("", ">= 0.97"), ("-standing", ">= 0.985"))
        for aim in (least if service_ms == 100 else "",)
    },
}
"""The stage to reach now, and the aim after it (requirements R181 to R183)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One figure. `ratio` is to `floor`, which was measured in the same run."""

    name: str
    value: float | None
    """None if it was not measured; then `parts` has the reason."""
    unit: str
    floor: float | None = None
    core_us: Mapping[str, float] = field(default_factory=dict)
    """CPU of each process or part for one unit of work, in core-microseconds."""
    parts: Mapping[str, str] = field(default_factory=dict)
    """What the figure is made of, or is to be compared with."""

    @property
    def ratio(self) -> float | None:
        return self.value / self.floor if self.floor and self.value is not None else None


def not_run(name: str, reason: str) -> Result:
    """Silence must not look like success."""
    return Result(name=name, value=None, unit="", parts={"not run": reason})


def percentiles(name: str, unit: str, sample: Sequence[float], **floors: float) -> list[Result]:
    """Rows `<name>-p50` and `<name>-p99`; `floors` are those of the same percentiles."""
    cuts = statistics.quantiles(sample, n=100, method="inclusive")
    return [
        Result(name=f"{name}-{which}", value=value, unit=unit, floor=floors.get(which))
        for which, value in (("p50", cuts[49]), ("p99", cuts[98]))
    ]


def write(results: Iterable[Result], path: Path, seed: int) -> None:
    """One JSON line a figure, with what it was measured on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as out:
        for result in results:
            line = {**asdict(result), "ratio": result.ratio, "versions": versions(), "seed": seed}
            out.write(json.dumps(line) + "\n")


def show(results: Iterable[Result]) -> None:
    """The table, in Markdown's form so that the README can hold it."""
    title = " ".join(f"{name} {value}" for name, value in versions().items())
    console = Console(width=WIDTH)
    console.print(title, style="dim")
    table = Table(box=MARKDOWN)
    headings = ("figure", "value", "unit", "floor", "ratio", "stage now", "aim", "core-us, parts")
    for heading in headings:
        table.add_column(heading, justify="right" if heading in headings[1:5:2] else "left")
    for result in results:
        stage, aim = GOALS.get(result.name, ("", ""))
        table.add_row(
            result.name,
            "" if result.value is None else _figure(result.value),
            result.unit,
            "" if result.floor is None else _figure(result.floor),
            "" if result.ratio is None else f"{result.ratio:.2f}",
            stage,
            aim,
            "; ".join(_beside(result)),
        )
    console.print(table)


@cache
def versions() -> dict[str, str]:
    """Everything that a figure depends on and that may change under it."""
    commit = subprocess.run(
        ["git", "-C", str(REPOSITORY), "describe", "--always", "--dirty"],
        capture_output=True,
        text=True,
        check=False,
    )
    libraries = ("confluent-kafka", "rocksdict", "fastavro", "msgspec")
    return {
        "commit": commit.stdout.strip() or "unknown",
        "kafka": KAFKA_VERSION,
        "python": platform.python_version(),
        **{name: version(name) for name in libraries},
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }


def _beside(result: Result) -> Iterator[str]:
    yield from (f"{name} {value:.0f}" for name, value in result.core_us.items())
    yield from (f"{name}: {text}" for name, text in result.parts.items())


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
