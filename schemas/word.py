"""What every generated record is: slotted, keyword-only, and never assigned to after it is made."""

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

T = TypeVar("T", bound=type)


@dataclass_transform(kw_only_default=True, frozen_default=True)
def word(cls: T) -> T:
    """Make a record class of `cls`.

    Type checkers refuse assignment to its fields. At run time nothing does: a truly frozen
    dataclass costs two and a half times as much to make, on the hottest path there is.
    """
    return dataclass(slots=True, kw_only=True)(cls)  # type: ignore[return-value]
