"""Environments of their own for what is measured beside the project, made when they are wanted.

They are below `out/`, and nothing in them is a dependency of the project.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.result import REPOSITORY

FOLDER = Path(__file__).parent / "rivals"
ENVIRONMENTS = REPOSITORY / "out" / "rivals"
INSTALL_S, PLAY_S = 600, 900


class Unavailable(Exception):
    """It could not be installed or did not run; the row says so, and the others go on."""


def play(script: str, packages: Sequence[str], *arguments: str) -> None:
    """Run one of the scripts in `rivals/` where these packages are.

    Raises:
        Unavailable: with the last line of what was said.
    """
    environment = ENVIRONMENTS / script.removesuffix(".py")
    python = environment / "bin" / "python"
    ready = environment / ("-".join(packages).replace("==", "-") + ".ready")
    try:
        if not ready.exists():
            _call(INSTALL_S, sys.executable, "-m", "venv", "--clear", str(environment))
            _call(INSTALL_S, str(python), "-m", "pip", "install", "--quiet", *packages)
            ready.touch()
        _call(PLAY_S, str(python), str(FOLDER / script), *arguments)
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", None) or str(error)
        raise Unavailable(str(said).strip().splitlines()[-1][:160]) from error


def _call(within_s: float, *command: str) -> None:
    quiet = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}  # prices are not asked for
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=within_s, env=quiet)
