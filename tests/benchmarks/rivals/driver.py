"""One caller with a queue in simulated time, for a rival that says whether a call may go now.

It runs in the rival's own environment and knows nothing of this project: `trace.json` has limits
and requests, and what it writes has who went when.
"""

import json
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

STEP_MS = 250
"""Between two tries of the one that waits first."""
Admit = Callable[[int, int], bool]
"""Whether a call of so many tokens may go at this instant; True counts it."""


def drive(make: Callable[[dict[str, Any]], Admit]) -> None:
    """Play `trace.json` (first argument) and write what was admitted (second one)."""
    trace = json.loads(Path(sys.argv[1]).read_text())
    admit, admitted = make(trace), []
    waiting: deque[list[int]] = deque()
    asked = deque(trace["requests"])
    for now_ms in range(0, trace["span_ms"], STEP_MS):
        while asked and asked[0][0] <= now_ms:
            waiting.append(asked.popleft())
        while waiting and admit(now_ms, waiting[0][1]):
            admitted.append([now_ms, waiting.popleft()[1]])
    Path(sys.argv[2]).write_text(json.dumps(admitted))
