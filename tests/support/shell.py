"""The command as a script runs it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


class Shell:
    """Runs the command as a script would, in the environment that `evenhand dev` prints."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = {**os.environ, **environment}

    def __call__(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "evenhand", *arguments],
            cwd=ROOT,
            env={**self._environment, **more},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def states(self, operations: Iterable[str]) -> set[str]:
        return {self.data("operations", "get", one)["state"] for one in operations}

    def data(self, *arguments: str) -> Any:
        done = self(*arguments)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def exported(lines: Iterator[str]) -> dict[str, str]:
    pairs = (line.removeprefix("export ").split("=", 1) for line in lines if line[:1] != "#")
    return dict(pairs)
