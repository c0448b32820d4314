"""The words as tests write them: plain strings and numbers where the house has richer types."""

from typing import Any

from schemas import events, inputs

e: Any = events
i: Any = inputs
