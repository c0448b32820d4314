"""The programs: a scheduler, the API, both with a broker for development, and the demo."""

import signal
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Annotated

import typer

from api.settings import ApiSettings
from api.wiring import run_api
from evenhand.cli.development import Development
from evenhand.cli.output import Exit, leave, say
from evenhand.cli.settings import checked
from evenhand.dev.broker import Broker, NoBroker
from evenhand.dev.processes import ProcessError, Processes
from streams.shell.settings import Settings
from streams.shell.wiring import run_scheduler


def scheduler() -> None:
    """Take part in one cell as owner or standby, until SIGTERM or Ctrl-C.

    Example:
    evenhand scheduler
    """
    raise typer.Exit(run_scheduler(checked(Settings)))


def api() -> None:
    """Answer HTTP for one cell, until SIGTERM or Ctrl-C.

    Example:
    evenhand api
    """
    raise typer.Exit(run_api(checked(ApiSettings)))


def dev(
    *,
    data: Annotated[
        Path | None, typer.Option(help="Folder to go on in; without one all is gone at the end.")
    ] = None,
    api_port: Annotated[int, typer.Option(min=0, help="Of the API; 0 means a free one.")] = 8080,
) -> None:
    """Run a broker, a scheduler and the API until Ctrl-C, with a domain and a pool to try.

    Addresses and keys are printed as lines for a shell. Everything ends with this command.

    Example:
    evenhand dev
    """
    _stop_by_signal()
    with TemporaryDirectory(prefix="evenhand-dev-") as scratch:
        home = data or Path(scratch)
        home.mkdir(parents=True, exist_ok=True)
        try:
            with Broker(data=data and data / "broker", tell=say) as broker:
                _develop(broker, home, api_port)
        except (NoBroker, ProcessError) as error:
            leave(Exit.ERROR, str(error))
    say("Everything has been stopped.")


def _develop(broker: Broker, home: Path, api_port: int) -> None:
    with Processes(home / "logs") as processes:
        development = Development(processes, broker.bootstrap, home=home, api_port=api_port)
        development.start()
        for line in development.shell_lines():
            typer.echo(line)
        sys.stdout.flush()
        say("Ready. Ctrl-C stops everything.")
        try:
            while True:
                development.stay()
        except KeyboardInterrupt:
            say("Stopping.")


def demo(
    *,
    seconds: Annotated[int, typer.Option(min=1, help="Of play.")] = 60,
    provider_percent: Annotated[
        int, typer.Option(min=1, help="What the provider allows of what Evenhand was told.")
    ] = 100,
    out: Annotated[Path, typer.Option(help="Folder for what came of it.")] = Path("out/demo"),
) -> None:
    """Play ten minutes of real traffic, kill the owner in the middle, and judge what happened.

    Exit code 7 if anything was lost, doubled or above a limit.

    Example:
    evenhand demo --seconds 30
    """
    from evenhand.dev.demo import Options, play  # noqa: PLC0415 - only the demo needs the traces

    _stop_by_signal()
    try:
        summary = play(Options(seconds=seconds, provider_percent=provider_percent, out=out))
    except KeyboardInterrupt:
        leave(Exit.INTERRUPTED, "Interrupted; everything has been stopped.")
    except (NoBroker, ProcessError) as error:
        leave(Exit.ERROR, str(error))
    if not summary.is_clean:
        raise typer.Exit(Exit.DIFFERENCE)


def _stop_by_signal() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
