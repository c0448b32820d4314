"""`python -m streams`: one scheduler process, set by the environment."""

import sys

from streams.shell.settings import Settings
from streams.shell.wiring import run_scheduler

if __name__ == "__main__":
    sys.exit(run_scheduler(Settings()))
