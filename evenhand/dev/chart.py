"""The picture of a play: shares of the budget above, waits below, over the same time."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape

from evenhand.dev.story import Story, shares_over_time

WIDTH, HEIGHT = 960, 620
LEFT, RIGHT = 64, 830
"""The plot's edges; names of the lines stand to the right of it."""
PANELS = ((70, 290), (360, 560))
"""Top and bottom of shares and of waits."""
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9")
"""Told apart with any colour vision, on light and on dark."""
LINES_MAX = 6
"""Of the grid, in a panel."""
LABEL_GAP = 16
"""Below this, names of neighbouring lines would overlap."""

_STYLE = """
svg { background: #ffffff; font: 13px system-ui, sans-serif; }
text { fill: #222222; } .dim { fill: #666666; } .title { font-weight: 600; font-size: 15px; }
.grid { stroke: #dddddd; stroke-width: 1; } .band { fill: #f1f1f1; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; }
.due { stroke-width: 1.2; stroke-dasharray: 5 4; opacity: .8; }
.kill { stroke: #888888; stroke-width: 1.5; stroke-dasharray: 2 3; }
@media (prefers-color-scheme: dark) {
  svg { background: #16181b; } text { fill: #e6e6e6; } .dim { fill: #a0a0a0; }
  .grid { stroke: #33363b; } .band { fill: #202327; }
}
"""

Points = Sequence[tuple[int, float]]


def picture(story: Story, *, window_ms: int) -> str:
    """An SVG file: the share of settled cost in the last window, and the oldest wait, by tenant.

    Grey is the time in which every tenant had something waiting: only there are shares promised.
    """
    weights = sum(tenant.weight for tenant in story.tenants.values())
    shares = shares_over_time(story, window_ms)
    share_lines = {name: [(at, by[name]) for at, by in shares] for name in story.tenants}
    wait_lines = {
        name: [(sample.at_ms, sample.oldest_ms[name] / 1000) for sample in story.samples]
        for name in story.tenants
    }
    due = {name: tenant.weight / weights for name, tenant in story.tenants.items()}
    longest_s = max((wait for line in wait_lines.values() for _, wait in line), default=1.0)
    top = _Panel(story, PANELS[0], highest=1.0, step=0.25)
    bottom = _Panel(story, PANELS[1], highest=max(longest_s, 1.0) * 1.05, step=_step(longest_s))
    parts = [
        _text(LEFT, 24, "Who gets the budget, and who waits how long", "title"),
        _text(LEFT, 46, f"share of settled cost, last {window_ms / 1000:g} s; dashed: weight"),
        *top.frame(lambda value: f"{value:.0%}"),
        *top.due(due),
        *top.lines(share_lines),
        _text(LEFT, PANELS[1][0] - 14, "longest wait so far of what is waiting, seconds"),
        *bottom.frame(lambda value: f"{value:g}"),
        *bottom.lines(wait_lines),
        *top.kills(named=True),
        *bottom.kills(named=False),
        *bottom.time_axis(),
    ]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
    title = "<title>Shares and waits of each tenant over time</title>"
    return "\n".join([head, title, f"<style>{_STYLE}</style>", *parts, "</svg>\n"])


class _Panel:
    """One plot: time to the right, values upwards from zero."""

    def __init__(
        self, story: Story, edges: tuple[int, int], *, highest: float, step: float
    ) -> None:
        self._story = story
        self._first_ms = story.began_ms or 0
        self._span_ms = max(1, story.ended_ms - self._first_ms)
        self._top, self._bottom = edges
        self._highest, self._step = highest, step

    def frame(self, name: Callable[[float], str]) -> Iterable[str]:
        """Grey where all are backlogged, and a named line at each step."""
        for span in self._story.backlogged:
            left, right = self._x(span.first_ms), self._x(span.last_ms)
            yield (
                f'<rect class="band" x="{left:.1f}" y="{self._top}" width="{right - left:.1f}" '
                f'height="{self._bottom - self._top}"/>'
            )
        for number in range(int(self._highest / self._step) + 1):
            value = number * self._step
            y = self._y(value)
            yield f'<line class="grid" x1="{LEFT}" x2="{RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            yield _text(LEFT - 8, y + 4, name(value), "dim", anchor="end")

    def due(self, shares: Mapping[str, float]) -> Iterable[str]:
        """Where each tenant's line should be."""
        for colour, share in zip(COLOURS, shares.values(), strict=False):
            y = self._y(share)
            yield (
                f'<line class="due" stroke="{colour}" x1="{LEFT}" x2="{RIGHT}" '
                f'y1="{y:.1f}" y2="{y:.1f}"/>'
            )

    def lines(self, lines: Mapping[str, Points]) -> Iterable[str]:
        """One a tenant, named at its end."""
        ends = []
        for colour, (name, points) in zip(COLOURS, lines.items(), strict=False):
            kept = [p for p in points if 0 <= p[0] - self._first_ms <= self._span_ms]
            if not kept:
                continue
            path = " ".join(f"{self._x(at):.1f},{self._y(value):.1f}" for at, value in kept)
            yield f'<polyline class="line" stroke="{colour}" points="{path}"/>'
            ends.append((self._y(kept[-1][1]), name, colour))
        free_y = float(self._bottom)
        for y, name, colour in sorted(ends, reverse=True):
            at_y = min(y, free_y)
            free_y = at_y - LABEL_GAP
            yield f'<circle cx="{RIGHT + 14}" cy="{at_y:.1f}" r="4" fill="{colour}"/>'
            yield _text(RIGHT + 24, at_y + 4, name)

    def kills(self, *, named: bool) -> Iterable[str]:
        """Where an owner was lost."""
        for span in self._story.takeovers:
            x = self._x(span.first_ms)
            yield (
                f'<line class="kill" x1="{x:.1f}" x2="{x:.1f}" '
                f'y1="{self._top}" y2="{self._bottom}"/>'
            )
            if named:
                said = f"owner killed; granting again after {span.last_ms - span.first_ms} ms"
                yield _text(x + 6, self._top + 12, said, "dim")

    def time_axis(self) -> Iterable[str]:
        """Seconds since the first admission."""
        for second in range(0, self._span_ms // 1000 + 1, 10):
            x = self._x(self._first_ms + second * 1000)
            yield _text(x, self._bottom + 20, str(second), "dim", anchor="middle")
        yield _text((LEFT + RIGHT) / 2, self._bottom + 42, "seconds of play", anchor="middle")

    def _x(self, at_ms: float) -> float:
        share = (at_ms - self._first_ms) / self._span_ms
        return LEFT + min(1.0, max(0.0, share)) * (RIGHT - LEFT)

    def _y(self, value: float) -> float:
        return self._bottom - value / self._highest * (self._bottom - self._top)


def _step(highest: float) -> float:
    return next(
        step for step in (1, 2, 5, 10, 20, 50, 100, 1_000_000) if highest <= LINES_MAX * step
    )


def _text(x: float, y: float, said: str, style: str = "", *, anchor: str = "start") -> str:
    where = f'x="{x:.1f}" y="{y:.1f}" class="{style}" text-anchor="{anchor}"'
    return f"<text {where}>{escape(said)}</text>"
