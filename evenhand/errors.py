"""What can go wrong for a user: one class per refusal code, and a few for what has no code."""

from evenhand._error import EvenhandError as EvenhandError  # noqa: PLC0414 - exported
from evenhand._refusals import *  # noqa: F403 - this is where users find them
from evenhand._refusals_running import *  # noqa: F403 - as above
from evenhand._words import codes


class Unreachable(EvenhandError):
    """No answer came; whether the request was taken is unknown. The same key may be sent again."""


class NotSent(EvenhandError):
    """Nothing went to the provider: the reservation is released. Raise it only if that is sure."""


class LinkLost(EvenhandError):
    """The inbox cannot be read on without a gap: the member's process must start anew."""


class StillRunning(EvenhandError):
    """The operation has not ended yet; its id is in `operation`. Wait again, or look later."""


class ToolNotAllowed(EvenhandError):
    """The run may not use this tool."""


class OperationEnded(EvenhandError):
    """The operation ended before it was granted, so there is nothing to wait for."""


BY_CODE: dict[codes.Code, type[EvenhandError]] = {
    kind.code: kind for kind in EvenhandError.__subclasses__() if kind.code is not None
}


def kind_of(code: str) -> type[EvenhandError]:
    """The class for a code; EvenhandError for one that a newer server made."""
    return (
        BY_CODE.get(codes.Code(code), EvenhandError) if code in set(codes.Code) else EvenhandError
    )
