"""How a noun is found, and what is said where its libraries are missing."""

from typing import Any

import pytest
from typer.testing import CliRunner

from evenhand.cli import app as cli
from evenhand.cli.output import Exit

RUNNER = CliRunner()


@pytest.mark.parametrize("arguments", [["topics", "apply"], ["dev", "--data", "x"], ["audit"]])
def test_who_lacks_an_extra_is_told_so_whatever_else_was_asked(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(cli, "import_module", missing)
    done = RUNNER.invoke(cli.app, arguments)
    assert (done.exit_code, "evenhand[server]" in done.output) == (Exit.ERROR, True)


@pytest.mark.parametrize("noun", list(cli.NOUNS))
def test_every_noun_has_a_help_of_its_own(noun: str) -> None:
    done = RUNNER.invoke(cli.app, [noun, "--help"])
    assert (done.exit_code, "--help" in done.output) == (0, True)
    assert "--install-completion" not in done.output
