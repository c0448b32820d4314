"""Unknown outcomes and waits over HTTP, with a real scheduler on a real broker."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from schemas.topics import Topic
from streams.shell.settings import Settings
from tests.support.door import SUBMIT
from tests.support.kafka import Log, until
from tests.support.served import Cell, attempt_of, join, served
from tests.support.words import i


@pytest.fixture
def cell(begun: Settings, log: Log, tmp_path: Path) -> Iterator[Cell]:
    with served(begun, log, tmp_path) as made:
        yield made


def test_an_unknown_outcome_holds_its_slot_until_an_operator_says_what_became_of_it(
    cell: Cell,
) -> None:
    cell.start("streams")
    cell.start_api()
    cell.configure()
    location = cell.submit("k").headers["Location"]
    join(cell.log)
    until(lambda: cell.ask("GET", location).json()["state"] == "granted", "a grant")
    named = attempt_of(cell.log)
    cell.log.send(Topic.STARTS, i.StartRequested(**named))
    until(lambda: cell.ask("GET", location).json()["state"] == "started", "a start")
    cell.log.send(Topic.RESULTS, i.ResultReported(**named, outcome="unknown", error="reset"))
    until(lambda: cell.ask("GET", location).json()["state"] == "unknown", "an unknown outcome")
    waited = cell.ask("GET", location, headers={"Prefer": "wait=1"})
    assert (waited.status_code, waited.json()["state"]) == (202, "unknown")
    (_, slots) = cell.ask("GET", "/v1/budgets/d").json()["items"][0]["dimensions"]
    assert (slots["in_use"], slots["unknown"], slots["free"]) == (1, 1, 3)
    (unknown,) = cell.ask("GET", "/v1/unknowns").json()["items"]
    assert (unknown["member"], unknown["unknown"]["error"]) == ("m1", "reset")

    path = f"/v1/unknowns/{unknown['operation']}:reconcile"
    said = {"as": "completed", "reason": "seen", "prompt_tokens": 200, "output_tokens": 40}
    assert cell.ask("POST", path, json=said).status_code == 403
    told = cell.ask("POST", path, key="operator", json=said)
    assert (told.status_code, told.json()["state"]) == (202, "succeeded")
    again = cell.ask("POST", path, key="operator", json=said)
    assert (again.status_code, again.json()["code"]) == (409, "not-unknown")
    ended = cell.ask("GET", location, headers={"Prefer": "wait=20"})
    assert (ended.status_code, ended.json()["used_output_tokens"]) == (200, 40)
    (_, slots) = cell.ask("GET", "/v1/budgets/d").json()["items"][0]["dimensions"]
    assert (slots["unknown"], slots["free"]) == (0, 4)
    (ledger,) = cell.ask("GET", "/v1/tenants/acme/entitlement").json()["items"]
    assert (ledger["entitlement"]["committed"], ledger["pacing"]["tokens_charged"]) == (1, 240)
    metrics = cell.ask("GET", "/metrics", key="operator").text
    assert 'evenhand_balance_residue{cell="main",of="offered"} 0.0' in metrics


def test_a_submission_waits_for_its_recorded_end(cell: Cell) -> None:
    cell.start("streams")
    cell.start_api()
    cell.configure()
    join(cell.log)

    def work() -> None:
        until(lambda: bool(cell.log.read(Topic.GRANTS)), "a grant")
        named = attempt_of(cell.log)
        cell.log.send(Topic.STARTS, i.StartRequested(**named))
        cell.log.send(Topic.RESULTS, i.ResultReported(**named, outcome="success"))

    with ThreadPoolExecutor(1) as worker:
        worked = worker.submit(work)
        headers = {"Idempotency-Key": "k", "Prefer": "wait=30"}
        reply = cell.ask("POST", "/v1/operations", json=SUBMIT, headers=headers)
        worked.result()
    assert (reply.status_code, reply.json()["state"]) == (200, "succeeded")
