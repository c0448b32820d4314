"""`python -m evenhand`, and the `evenhand` command."""

import sys


def main() -> None:
    """Run the command and end the process with its exit code (conventions section 5)."""
    try:
        from evenhand.cli.app import run  # noqa: PLC0415 - the message below needs no extra
    except ModuleNotFoundError as error:
        sys.exit(f"Expected the extra `cli` (pip install 'evenhand[server]'), but {error}")
    run()


if __name__ == "__main__":
    main()
