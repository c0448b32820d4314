"""`python -m api`: the door of the cell that the environment names."""

import sys

from .settings import ApiSettings
from .wiring import run_api

if __name__ == "__main__":
    sys.exit(run_api(ApiSettings()))
