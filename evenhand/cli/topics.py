"""`evenhand topics`: the topics of a cell, and its beginning."""

from typing import Annotated

import typer

from evenhand.cli.output import Exit, leave, say
from evenhand.cli.settings import checked
from streams.shell.journal import AppendFailed, JournalError
from streams.shell.kafka.admin import ClusterSilent, TopicsDiffer
from streams.shell.settings import Settings
from streams.shell.wiring import apply_topics

app = typer.Typer(no_args_is_help=True, help="The topics of a cell.")


@app.command("apply")
def apply(
    *,
    generation: Annotated[
        int,
        typer.Option(min=1, help="Higher than before only if all topics were recreated on purpose"),
    ] = 1,
) -> None:
    """Create the topics as declared and begin the cell; harmless when repeated.

    Example:
    evenhand topics apply
    """
    settings = checked(Settings)
    try:
        began = apply_topics(settings, generation)
    except (ClusterSilent, AppendFailed) as error:
        leave(Exit.TRY_LATER, str(error))
    except (TopicsDiffer, JournalError) as error:
        leave(Exit.REFUSED, str(error))
    what = "has begun" if began else "had begun before"
    say(f"Cell {settings.cell} {what}; its topics are as declared at {settings.bootstrap}.")
