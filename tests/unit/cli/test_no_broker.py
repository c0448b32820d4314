"""Where no broker answers, the journal's commands say so once, and nothing else is printed."""

import pytest

from evenhand.__main__ import main
from evenhand.audit import _kafka as audit_kafka
from evenhand.cli.output import Exit
from projections import kafka

NOBODY = "127.0.0.1:1"


@pytest.mark.parametrize("command", ["verify", "tail"])
def test_only_our_own_sentence_is_printed(
    command: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EVENHAND_BOOTSTRAP", NOBODY)
    monkeypatch.setattr("sys.argv", ["evenhand", "journal", command])
    for module, bound in ((kafka, "ASK_SECONDS"), (audit_kafka, "ANSWER_SECONDS")):
        monkeypatch.setattr(module, bound, 0.5)
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == Exit.TRY_LATER
    printed = capfd.readouterr()
    assert printed.out == ""
    (sentence,) = printed.err.splitlines()
    assert sentence.startswith("Expected ")
    assert NOBODY in sentence
