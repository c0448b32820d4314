"""The story of `make demo`: real traffic that is more than a provider can take, shared by weight.

Everything is real but the provider: broker, two schedulers, API, workers. In the middle the owner
is killed. At the end all figures come from the topics and from the provider's own record.
"""

import asyncio
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.live import Live

from evenhand.dev.broker import Broker
from evenhand.dev.chart import picture
from evenhand.dev.demo_cell import LIMITS, SPEED_UP
from evenhand.dev.demo_player import Player
from evenhand.dev.demo_programs import Programs, Unanswered
from evenhand.dev.demo_report import report
from evenhand.dev.demo_topics import Topics
from evenhand.dev.demo_view import Seen, drawn, line, look
from evenhand.dev.judge import Limits
from evenhand.dev.play import Arrival, arrivals
from evenhand.dev.processes import Processes
from evenhand.dev.summary import Call, Summary, summarize

FIRST_MINUTE = 10
"""Of the traces; the busiest time of both services together."""
LOOK_EVERY_S = 1.0
SAY_EVERY_S = 10.0
"""Without a terminal a line is enough now and then."""
DRAIN_S = 75.0
"""After the last submission; in simulation the queues are empty after 36 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How long, with which provider, and where to."""

    seconds: int
    """Of play, while submissions arrive."""
    provider_percent: int
    """Of the limits that Evenhand was told; below 100 it is told too much."""
    out: Path

    @property
    def limits(self) -> Limits:
        """The provider's own."""
        return replace(
            LIMITS,
            requests=LIMITS.requests * self.provider_percent // 100,
            tokens=LIMITS.tokens * self.provider_percent // 100,
            slots=LIMITS.slots * self.provider_percent // 100,
        )


class Demo:
    """One play, from an empty machine to the summary."""

    def __init__(self, options: Options, console: Console) -> None:
        self._options = options
        self._console = console
        self._said_at = 0.0
        self._story = ""

    def run(self) -> Summary:
        """Everything in order; whatever happens, no process is left behind.

        Raises:
            NoBroker, ProcessError: the set-up failed; the message says why.
        """
        out, say = self._options.out, self._console.print
        out.mkdir(parents=True, exist_ok=True)
        with (
            Broker(tell=say) as broker,
            tempfile.TemporaryDirectory(prefix="evenhand-demo-") as data,
            Processes(out / "logs") as processes,
        ):
            say("Starting two schedulers, the API, a provider and two workers.")
            programs = Programs(processes, broker.bootstrap, data=Path(data), out=out)
            programs.start(self._options.limits)
            play = arrivals(
                first_minute=FIRST_MINUTE,
                minutes=self._options.seconds * SPEED_UP / 60,
                speed_up=SPEED_UP,
            )
            say(f"Playing {len(play):,} recorded requests in {self._options.seconds} s.")
            asyncio.run(self._play(programs, play))
            programs.end_work()
            programs.close()
            say("The play is over. Reading topics and record; deciding again under FIFO.")
            return self._sum_up(broker.bootstrap, programs)

    async def _play(self, programs: Programs, play: list[Arrival]) -> None:
        player = Player(programs.kafka, programs.url("api"), programs.tenant_keys)
        live = Live(console=self._console, auto_refresh=False)
        with live:
            async with asyncio.TaskGroup() as together:
                playing = together.create_task(player.play(play))
                together.create_task(self._kill_the_owner(programs))
                await self._watch(programs, live, lambda _: playing.done())
            ends_at = time.monotonic() + DRAIN_S
            self._story += " All submissions are in; the queues run empty."
            await self._watch(
                programs,
                live,
                lambda seen: (
                    (seen.decided >= player.sent and not seen.unfinished)
                    or time.monotonic() > ends_at
                ),
            )
        await player.close()

    async def _kill_the_owner(self, programs: Programs) -> None:
        await asyncio.sleep(self._options.seconds / 2)
        owner = await asyncio.to_thread(programs.owner)
        assert owner is not None, "Expected an owner in the middle of the play"
        programs.kill(owner)
        self._story = f"{owner} owned the cell and got SIGKILL; the standby carries on."

    async def _watch(self, programs: Programs, live: Live, until: Callable[[Seen], bool]) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                seen = await asyncio.to_thread(look, programs)
            except Unanswered:
                continue  # a picture missed is no reason to end a play
            if self._console.is_terminal:
                live.update(drawn(seen, self._story), refresh=True)
            elif time.monotonic() >= self._said_at + SAY_EVERY_S:
                self._said_at = time.monotonic()
                self._console.print(line(seen))
            if until(seen):
                return

    def _sum_up(self, bootstrap: str, programs: Programs) -> Summary:
        out = self._options.out
        topics = Topics(bootstrap, programs.prefix)
        story, fifo = topics.story(), topics.under("fifo")
        lines = programs.record.read_text().splitlines()
        summary = summarize(
            story,
            submissions=topics.submissions,
            verdict=json.loads(programs.verdict.read_text()),
            calls=[Call.read(json.loads(text)) for text in lines],
            limits=LIMITS,
            fifo_waits_ms={name: tenant.waits_ms for name, tenant in fifo.tenants.items()},
            audit=topics.audit(programs.record),
        )
        topics.close()
        (out / "summary.json").write_text(json.dumps(summary.as_json(), indent=2) + "\n")
        (out / "shares.svg").write_text(picture(story, window_ms=LIMITS.window_ms))
        return summary


def play(options: Options) -> Summary:
    """Play, and say what came of it; as `Demo.run`."""
    console = Console()
    summary = Demo(options, console).run()
    report(summary, options.out, console)
    return summary
