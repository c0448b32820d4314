"""What members say over HTTP in its shortest true form, by somebody's key."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from api.auth import add_key
from schemas.bodies import Role
from schemas.ids import member_of_key
from tests.support.door import Entrance, entrance
from tests.support.told import Told


@contextmanager
def workplace(path: Path) -> Iterator[Entrance]:
    """An open door with an admitted operation, and a second key of a worker."""
    with entrance(path) as made:
        made.keys["colleague"] = add_key(made.keys_path, role=Role.WORKER)
        made.tell((0, Told().admitted()), inputs=[(0, 0, 1)])
        yield made


def member(door: Entrance, key: str = "worker") -> str:
    """The member `me` of somebody's key."""
    return member_of_key(door.keys[key].split("_")[1], "me")


def speaks(door: Entrance, key: str = "worker", **more: Any) -> dict[str, Any]:
    return {
        "operation": Told().id.hex(),
        "incarnation": 1,
        "attempt": 1,
        "epoch": 1,
        "member": member(door, key),
        "member_epoch": "e1",
        **more,
    }


def claims(body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    operation = body.pop("operation")
    return f"/v1/grants/{operation}:claim", body


def checkpoints(body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    operation = body.pop("operation")
    return f"/v1/operations/{operation}/checkpoints", {**body, "number": 1}


USED = {"prompt_tokens": 1, "output_tokens": 2, "evidence": "call-1"}
ABOUT_ATTEMPTS = {
    "claim": claims,
    "start": lambda body: ("/v1/starts", body),
    "send": lambda body: ("/v1/sends", {**body, "send_delay_ms": 1}),
    "checkpoint": checkpoints,
    "result": lambda body: ("/v1/results", {**body, "outcome": "success"}),
    "usage": lambda body: ("/v1/usage", {**body, **USED}),
}


def say(door: Entrance, what: str, *, key: str = "worker", **more: Any) -> Any:
    path, body = ABOUT_ATTEMPTS[what](speaks(door, **more))
    return door.ask("POST", path, key=key, json=body)


def granted(door: Entrance) -> Told:
    told = Told(member=member(door))
    door.tell(told.granted())
    return told
