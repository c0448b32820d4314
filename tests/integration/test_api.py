"""The API as a process, beside a real scheduler on a real broker."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from schemas.topics import TOPICS, Topic
from streams.shell.settings import Settings
from tests.support.kafka import Log, until
from tests.support.served import STOP_S, Cell, attempt_of, join, served
from tests.support.told import Told
from tests.support.words import i


@pytest.fixture
def cell(begun: Settings, log: Log, tmp_path: Path) -> Iterator[Cell]:
    with served(begun, log, tmp_path) as made:
        yield made


def test_an_operation_is_admitted_granted_and_settled_before_the_readers_eyes(cell: Cell) -> None:
    cell.start("streams")
    cell.start_api()
    cell.configure()
    reply = cell.submit("k")
    assert (reply.status_code, reply.json()["state"]) == (202, "admitted")
    location = reply.headers["Location"]
    position = {"Evenhand-At-Least": reply.headers["Evenhand-Position"]}
    assert cell.ask("GET", location, headers=position).json()["place"] == 1

    join(cell.log)
    until(lambda: cell.ask("GET", location).json()["state"] == "granted", "a grant")
    (use, slots) = cell.ask("GET", "/v1/budgets/d").json()["items"][0]["dimensions"]
    assert (use["held"], use["counted"], slots["free"]) == (300, 300, 3)

    named = attempt_of(cell.log)
    cell.log.send(Topic.STARTS, i.StartRequested(**named))
    until(lambda: cell.ask("GET", location).json()["state"] == "started", "a start")
    cell.log.send(
        Topic.RESULTS,
        i.ResultReported(**named, outcome="success", prompt_tokens=200, output_tokens=40),
    )
    until(lambda: cell.ask("GET", location).json()["state"] == "succeeded", "a result")
    (use, slots) = cell.ask("GET", "/v1/budgets/d").json()["items"][0]["dimensions"]
    assert (use["held"], use["in_use"], use["counted"], slots["free"]) == (0, 0, 300, 4)
    tenant = cell.ask("GET", "/v1/tenants/acme").json()
    assert [tenant[name] for name in ("offered", "succeeded", "tokens_used")] == [1, 1, 240]


def test_repeats_over_http_and_kafka_are_one_admission(cell: Cell) -> None:
    cell.start("streams")
    cell.start_api()
    cell.configure()
    assert cell.submit("k").json()["state"] == "admitted"
    ((partition, offset),) = cell.log.send(Topic.SUBMISSIONS, Told("k").submitted)
    written = {"Evenhand-At-Least": f"submissions:{partition}:{offset}"}
    tenant = cell.ask("GET", "/v1/tenants/acme", headers=written).json()
    assert (tenant["admitted"], tenant["duplicates"]) == (1, 1)
    repeat = cell.submit("k")
    assert (repeat.status_code, repeat.json()["state"]) == (200, "waiting")
    assert cell.submit("k", prompt_tokens=199).json()["code"] == "idempotency-mismatch"


def test_the_owners_refusals_reach_the_client(cell: Cell) -> None:
    cell.start("streams")
    cell.start_api()
    cell.configure()
    for key, body, status, code in (
        ("big", {"prompt_tokens": 5_000}, 413, "never-fits"),
        ("pool", {"pool": "nowhere"}, 422, "unknown-pool"),
        ("none", {"start_within_ms": None}, 422, "deadline-missing"),
        ("open", {"output_tokens_max": None}, 422, "output-ceiling-missing"),
    ):
        reply = cell.submit(key, **body)
        assert (reply.status_code, reply.json()["code"]) == (status, code)


def test_with_no_scheduler_a_submission_is_received_and_admitted_later(cell: Cell) -> None:
    cell.start_api()
    reply = cell.submit("k", wait_ms=100)
    assert (reply.status_code, reply.json()["state"]) == (202, "received")
    assert cell.ask("GET", reply.headers["Location"]).status_code == 404
    written = {"Evenhand-At-Least": reply.headers["Evenhand-Input"]}
    assert cell.ask("GET", "/v1/tenants", headers=written).json()["code"] == "behind"
    cell.start("streams")
    until(lambda: cell.ask("GET", reply.headers["Location"]).status_code == 200, "an answer")


def test_what_was_acknowledged_is_there_after_a_kill(cell: Cell) -> None:
    cell.start("streams")
    api = cell.start_api()
    cell.configure()
    location = cell.submit("k").headers["Location"]
    api.kill()
    api.wait(STOP_S)
    cell.programs.remove(api)
    cell.start_api()
    assert cell.ask("GET", location).json()["state"] == "waiting"


def test_a_second_api_on_the_same_disk_says_so_and_leaves_the_first_alone(
    cell: Cell, capfd: pytest.CaptureFixture[str]
) -> None:
    cell.start_api()
    second = cell.start("api", EVENHAND_API_PORT="0")
    assert second.wait(STOP_S) == 1
    said = capfd.readouterr().err
    assert "not started: ViewsInUse: Expected" in said
    assert "EVENHAND_DATA_DIR" in said
    assert "Traceback" not in said
    assert cell.ask("GET", "/v1/tenants").status_code == 200


def test_a_recreated_journal_stops_the_api_and_keeps_it_from_starting_again(
    cell: Cell, capfd: pytest.CaptureFixture[str]
) -> None:
    api = cell.start_api()
    journal = cell.log.name(Topic.JOURNAL)
    cell.log.delete(journal)
    cell.log.create(journal, TOPICS[Topic.JOURNAL].all_settings)
    assert api.wait(STOP_S) == 1
    assert "halted: JournalTrimmed: Expected" in (said := capfd.readouterr().err)
    assert "Traceback" not in said
    again = cell.start("api")
    assert again.wait(STOP_S) == 1
    assert "not started: JournalReplaced: Expected" in (said := capfd.readouterr().err)
    assert "Traceback" not in said


def test_the_api_stops_when_it_is_asked_to(cell: Cell) -> None:
    api = cell.start_api()
    assert cell.stop(api) == 0


def test_without_a_keys_file_the_api_does_not_start(cell: Cell, tmp_path: Path) -> None:
    api = cell.start("api", EVENHAND_KEYS_FILE=str(tmp_path / "nowhere"))
    assert api.wait(STOP_S) == 1


def test_without_a_journal_the_api_says_what_is_missing(cell: Cell) -> None:
    api = cell.start("api", EVENHAND_CELL="nowhere")
    assert api.wait(STOP_S) == 1
