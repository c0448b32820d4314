"""The command against a real cell: every example of its help, exit codes, data and messages."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from evenhand import Attempt, Outcome, Result, Worker
from evenhand.cli.development import Development
from evenhand.dev.broker import Broker
from tests.support.developed import developed
from tests.support.examples import examples
from tests.support.kafka import until
from tests.support.shell import ROOT, Shell, exported

RUN_ELSEWHERE = {"dev", "demo", "scheduler", "api"}
"""`dev` has a test below and runs scheduler and API; the demo is a target of its own."""
ORDER = ["topics apply", "config apply", "operations submit", "unknowns show"]
AS_OPERATOR = {"budgets bound", "operations retry", "unknowns reconcile"}
TROUBLE = {
    "invoice-18": Outcome.UNKNOWN,
    "invoice-19": Outcome.SUCCESS,
    "invoice-20": Outcome.UNKNOWN,
}
"""What becomes of the operations that the examples name, by idempotency key."""
SUBMIT = [
    "operations",
    "submit",
    "--pool",
    "default",
    "--domain",
    "default",
    "--prompt-tokens",
    "900",
    "--output-tokens-max",
    "300",
    "--wait-admitted-ms",
    "5000",
    "--idempotency-key",
]


@pytest.fixture(scope="module")
def development(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Development]:
    with developed(broker, tmp_path_factory.mktemp("cell")) as development:
        yield development


@pytest.fixture(scope="module")
def shell(development: Development) -> Shell:
    return Shell(exported(development.shell_lines()))


def handle(attempt: Attempt) -> Result:
    """A worker that answers as the payload says."""
    return Result(outcome=Outcome(attempt.payload_ref or Outcome.SUCCESS))


@pytest.fixture(scope="module")
def trouble(development: Development, shell: Shell) -> dict[str, str]:
    """Ids of operations that went as `TROUBLE` says; the last was closed without knowing."""
    ids = {
        key: shell.data(*SUBMIT, key, "--payload-ref", outcome, "--output", "json")["operation"]
        for key, outcome in TROUBLE.items()
    }

    with Worker(handle, pool="default", via=development.kafka, places=4):
        until(lambda: shell.states(ids.values()) == {"unknown", "succeeded"}, "all to have run")
    closed = ("unknowns", "reconcile", ids["invoice-20"], "--as", "abandoned", "--reason", "lost")
    assert shell(*closed, EVENHAND_API_KEY=development.operator_key).returncode == 0
    return ids


def test_every_example_of_the_help_runs(
    shell: Shell, development: Development, trouble: dict[str, str]
) -> None:
    found = dict(examples())
    named = {word for example in found.values() for word in example if word in trouble.values()}
    assert named == set(trouble.values())
    assert all(example[:1] == ["evenhand"] for example in found.values()), found
    for name in sorted(found, key=lambda name: (ORDER.index(name) if name in ORDER else 9, name)):
        if name not in RUN_ELSEWHERE:
            key = development.operator_key if name in AS_OPERATOR else development.tenant_key
            done = shell(*found[name][1:], EVENHAND_API_KEY=key)
            assert done.returncode == 0, f"{name}: {done.stdout}{done.stderr}"


def test_data_is_on_stdout_and_messages_are_on_stderr(shell: Shell) -> None:
    done = shell(*SUBMIT, "stdout", "--output", "json")
    assert json.loads(done.stdout)["state"] == "admitted"
    assert done.stderr == ""
    refused = shell("operations", "get", "0" * 32)
    assert refused.stdout == ""
    assert "not-found" in refused.stderr


def test_exit_codes_say_what_a_script_should_do(shell: Shell) -> None:
    assert shell(*SUBMIT, "codes").returncode == 0
    assert shell(*SUBMIT, "codes", "--effect", "keyed").returncode == 3
    assert shell("operations", "submit").returncode == 2
    assert shell("operations", "get", "0" * 32).returncode == 5
    assert shell("tenants", "list", EVENHAND_API_KEY="eh_no_key").returncode == 6
    unreachable = shell("tenants", "list", EVENHAND_API_URL="http://127.0.0.1:1")
    assert unreachable.returncode == 4
    assert unreachable.stdout == ""


def test_unknown_outcomes_are_shown_and_reconciled_by_operators(
    shell: Shell, development: Development
) -> None:
    key = {"EVENHAND_API_KEY": development.operator_key}
    operation = shell.data(
        *SUBMIT, "doubtful", "--payload-ref", "unknown", "--runtime-ms", "900000"
    )["operation"]
    with Worker(handle, pool="default", via=development.kafka):
        until(lambda: shell.states([operation]) == {"unknown"}, "an unknown outcome")
    waited = shell("operations", "wait", operation, "--timeout", "1s")
    assert (waited.returncode, json.loads(waited.stdout)["state"]) == (4, "unknown")
    (row,) = [one for one in shell.data("unknowns", "list") if one["operation"] == operation]
    assert row["unknown"]["cause"] == "reported"
    table = shell("unknowns", "show", operation, "--output", "table").stdout
    assert "reported" in table
    assert operation in shell("slots", "list", "--output", "table").stdout
    assert shell.data("slots", "list", "--older-than", "1d") == []

    said = ("unknowns", "reconcile", operation, "--as", "failed", "--reason", "seen")
    assert shell(*said).returncode == 6
    assert shell(*said, **key).returncode == 0
    again = shell(*said, **key)
    assert (again.returncode, "not-unknown" in again.stderr) == (3, True)
    assert shell("unknowns", "show", operation).returncode == 5
    assert shell("operations", "wait", operation).returncode == 1
    found = shell.data("operations", "get", operation)
    assert found["unknown"]["evidence"][0]["reason"] == "seen"
    steps = [step["type"] for step in shell.data("operations", "events", operation)]
    assert steps[-2:] == ["OutcomeReconciled", "ReservationSettled"]
    retried = shell("operations", "retry", operation, "--reason", "again", **key)
    assert (retried.returncode, "not-dead" in retried.stderr) == (3, True)


def test_manual_acts_need_what_they_keep(shell: Shell) -> None:
    for arguments in (
        ("unknowns", "reconcile", "0" * 32, "--as", "completed"),
        ("unknowns", "reconcile", "0" * 32, "--reason", "seen"),
        ("unknowns", "reconcile", "0" * 32, "--as", "odd", "--reason", "seen"),
        ("operations", "retry", "0" * 32),
        ("slots", "list", "--older-than", "soon"),
        ("dead-letters", "list", "--state", "odd"),
    ):
        done = shell(*arguments)
        assert (done.returncode, done.stdout) == (2, ""), arguments


def test_lists_can_be_filtered_and_bounded(shell: Shell) -> None:
    for number in range(3):
        shell(*SUBMIT, f"list-{number}")
    rows = shell.data("operations", "list", "--state", "waiting", "--limit", "2")
    assert len(rows) == 2
    assert {row["state"] for row in rows} == {"waiting"}


def test_budgets_show_what_was_configured(shell: Shell) -> None:
    rows = shell.data("budgets", "list")
    assert {(row["domain"], row["dimension"]) for row in rows} >= {
        ("default", "requests"),
        ("default", "tokens"),
        ("default", "slots"),
    }


def test_a_budget_shows_what_it_keeps_free(shell: Shell, development: Development) -> None:
    key = {"EVENHAND_API_KEY": development.operator_key}
    (level,) = shell.data("budgets", "show", "default")
    assert (level["bulk_reserve"], level["saver"]) == (None, None)
    table = shell("budgets", "show", "default", "--output", "table", **key).stdout
    assert "bulk reserve percent" in table
    assert "tokens" in table
    assert shell("budgets", "show", "nowhere").returncode == 5


def test_what_bound_in_each_minute_is_for_operators(
    shell: Shell, development: Development, tmp_path: Path
) -> None:
    file, day = tmp_path / "config.json", {"window_ms": 86_400_000, "kind": "sliding"}
    closed = {"name": "calls-day", "unit": "requests", "limit": 0, **day}
    file.write_text(json.dumps({"domains": {"closed": {"dimensions": [closed]}}}))
    assert shell("config", "apply", str(file)).returncode == 0
    shown = ("budgets", "bound", "closed", "--minutes", "5")
    assert shell(*shown).returncode == 6
    key = {"EVENHAND_API_KEY": development.operator_key}
    minute = json.loads(shell(*shown, **key).stdout)[-1]
    (one,) = minute["bound"]
    assert (one["dimension"], one["held_by"], one["samples"]) == ("calls-day", "limit_zero", 0)
    table = shell(*shown, "--output", "table", **key).stdout.splitlines()
    assert table[0].split()[:4] == ["minute", "level", "dimension", "held"]
    assert table[-1].split()[1:4] == ["domain", "calls-day", "limit_zero"]
    assert shell("budgets", "bound", "nowhere", **key).returncode == 5
    assert shell("budgets", "bound", "closed", "--minutes", "1441", **key).returncode == 3


PRICED = """
[domains.priced]
[domains.priced.prices]
currency = "USD"
output_micros = 10_000_000
[[domains.priced.dimensions]]
name = "money-day"
unit = "money"
kind = "fixed"
limit = 50_000_000
window_ms = 86_400_000
"""


def test_a_limit_of_money_is_configured_and_shown_with_its_currency(
    shell: Shell, tmp_path: Path
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(PRICED)
    assert shell("config", "apply", str(file)).returncode == 0
    (row,) = [row for row in shell.data("budgets", "list") if row["domain"] == "priced"]
    assert (row["unit"], row["currency"], row["free"]) == ("money", "USD", 50_000_000)
    file.write_text(PRICED.replace("USD", "EUR"))
    done = shell("config", "apply", str(file))
    assert done.returncode == 3
    assert "Expected prices in USD while money-day limits money" in done.stderr


def test_a_queue_shows_its_head(shell: Shell) -> None:
    operation = shell.data(*SUBMIT, "queued", "--start-within-ms", "600000")["operation"]
    (queue,) = shell.data("tenants", "queue", "dev")
    assert queue["waiting"] >= 1
    assert queue["head"] in shell("tenants", "queue", "dev", "--output", "table").stdout
    assert shell("tenants", "queue", "nobody").returncode == 5
    shell("operations", "cancel", operation)


def test_a_wrong_file_changes_nothing(shell: Shell, tmp_path: Path) -> None:
    before = shell.data("budgets", "list")
    file = tmp_path / "config.toml"
    file.write_text("[domains.new]\npolicy = 'fifo'\ndimensions = []\nmisspelt = 1\n")
    done = shell("config", "apply", str(file))
    assert done.returncode == 2
    assert "misspelt" in done.stderr
    assert shell.data("budgets", "list") == before


def test_what_the_owner_refuses_is_reported_with_its_reason(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"pools": {"new": {"domains": ["nowhere"]}}}))
    done = shell("config", "apply", str(file), "--output", "json")
    assert done.returncode == 3
    assert json.loads(done.stdout)[0]["answer"] == "refused: invalid-field"
    assert "nowhere" in done.stderr


def test_settings_are_shown_with_their_origin(shell: Shell) -> None:
    rows = {row["setting"]: row for row in shell.data("config", "show")}
    assert rows["EVENHAND_BOOTSTRAP"]["origin"] == "environment"
    assert rows["EVENHAND_REPLICATION"]["origin"] == "default"


def test_a_new_key_opens_the_door(shell: Shell) -> None:
    key = shell("keys", "create", "--role", "auditor").stdout.strip()
    assert shell("tenants", "list", EVENHAND_API_KEY=key).returncode == 0


def test_dev_runs_everything_until_it_is_interrupted(tmp_path: Path, broker: Broker) -> None:
    out, said = tmp_path / "out", tmp_path / "said"
    with out.open("wb") as stdout, said.open("wb") as stderr:
        dev = subprocess.Popen(
            [sys.executable, "-m", "evenhand", "dev", "--api-port", "0"],
            cwd=ROOT,
            env={
                **os.environ,
                "EVENHAND_BOOTSTRAP": broker.bootstrap,
                "EVENHAND_PREFIX": f"dev{uuid4().hex[:8]}",
            },
            stdout=stdout,
            stderr=stderr,
        )
    try:
        until(lambda: b"Ready" in said.read_bytes(), "dev to be ready", 90)
        shell = Shell(exported(iter(out.read_text().splitlines())))
        assert shell.data(*SUBMIT, "in-dev", "--output", "json")["state"] == "admitted"
    finally:
        dev.send_signal(signal.SIGINT)
        assert dev.wait(60) == 0
    assert shell("tenants", "list").returncode == 4, "Expected the API to be gone"
