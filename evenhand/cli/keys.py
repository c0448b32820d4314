"""`evenhand keys`: who may ask the API."""

from typing import Annotated

import typer

from api.auth import add_key
from api.settings import ApiSettings
from evenhand.cli.output import Exit, leave, say
from evenhand.cli.settings import checked
from schemas.bodies import Role

app = typer.Typer(no_args_is_help=True, help="API keys, kept as hashes in a file.")


@app.command("create")
def create_key(
    *,
    role: Annotated[Role, typer.Option(help="What the key may do.")],
    tenant: Annotated[str | None, typer.Option(help="Whose key; needed for role tenant.")] = None,
    user: Annotated[str | None, typer.Option(help="Person or service in the tenant.")] = None,
    pool: Annotated[
        list[str] | None, typer.Option(help="A pool that a worker may work for; none means all.")
    ] = None,
) -> None:
    """Add a key to the keys file and print it, this once.

    The file is EVENHAND_KEYS_FILE, else keys.jsonl in EVENHAND_DATA_DIR.

    Example:
    evenhand keys create --role tenant --tenant acme --user billing
    """
    path = checked(ApiSettings).keys_path
    if role is Role.TENANT and not (tenant and user):
        leave(Exit.USAGE, "Expected --tenant and --user for role tenant, but one is missing")
    if pool and role is not Role.WORKER:
        leave(Exit.USAGE, f"Expected --pool only for role worker, but the role is {role}")
    try:
        key = add_key(path, role=role, tenant=tenant, user=user, pools=pool or ())
    except OSError as error:
        told = f"Expected EVENHAND_KEYS_FILE to be a file that can be written, but {path}"
        leave(Exit.USAGE, f"{told}: {error.strerror}")
    say(f"Added to {path}. It cannot be shown again:")
    typer.echo(key)
