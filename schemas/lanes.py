"""The lanes, which are the service classes of work: from the one that waits least to bulk."""

from typing import Final

INTERACTIVE: Final = "interactive"
"""Somebody sits before it and waits."""
DECISION: Final = "decision"
"""A running process waits for it."""
BULK: Final = "bulk"
"""Nobody waits for a single one; it leaves a reserve to the others."""
LANES: Final = (INTERACTIVE, DECISION, BULK)
