"""What every generated record is: slotted, and never assigned to after it is made."""

from typing import dataclass_transform

from msgspec import Struct


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Word(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """Base of all records: fields by keyword, in any order.

    Only the generated decoder passes them by position: for a record of 28 fields that costs
    0.26 us, by keyword 1.6, as a dataclass 2.2. Words hold values only and form no cycles, so the
    collector need not look at them.
    """
