"""What a process joins as, where its life as a member is, and what there is to do next."""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Generic, NamedTuple

from evenhand._attempt import A
from evenhand._words import ids, inputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining:
    """What a process joins as."""

    pool: ids.PoolId
    member: ids.MemberId
    """Its name, the same over all its lives; its inbox follows from it."""
    places: int
    """Attempts that may run at once, at least 1."""
    tenant: ids.TenantId | None = None
    """Whose process it is, for pool `self`."""

    def __post_init__(self) -> None:
        """Refuse what no cell would take."""
        if self.places < 1:
            raise ValueError(f"Expected at least one place, but got {self.places}")


class Phase(Enum):
    """Where a life is."""

    NEW = auto()
    JOINING = auto()
    MEMBER = auto()
    LEAVING = auto()


class Run(NamedTuple, Generic[A]):
    """The call may go out now: hand the attempt to its handler."""

    attempt: A


class Told(NamedTuple):
    """An answer to a submission of this process, for pool `self`."""

    event: Any


class Barred(NamedTuple):
    """The pool will never take this member; trying again would not help."""

    code: str


Step = inputs.Input | Run[A] | Told | Barred
"""What to do next: send a word, or one of the three others."""
