"""A configuration file: checked whole, and proposed in an order in which each part is known."""

import json
import re
from pathlib import Path

import pytest

from evenhand.cli.configuration import ConfigFile, read, stages
from evenhand.cli.development import CONFIG

PRICES = "[domains.d]\ndimensions = []\n[domains.d.prices]\n"


def written(tmp_path: Path, text: str, name: str = "config.toml") -> Path:
    file = tmp_path / name
    file.write_text(text)
    return file


def proposed(said: ConfigFile) -> list[list[tuple[str, str]]]:
    made = stages(said, cell="main", author="me", reason="a test")
    return [[(one.scope, one.name) for one in stage] for stage in made]


def test_the_file_that_ships_is_read() -> None:
    assert proposed(read(CONFIG)) == [
        [("domain", "default")],
        [("pool", "default")],
        [("tenant", "dev")],
    ]


def test_json_says_the_same_as_toml(tmp_path: Path) -> None:
    toml = read(written(tmp_path, "[tenants.acme]\nweight = 2\n"))
    assert read(written(tmp_path, json.dumps({"tenants": {"acme": {"weight": 2}}}), "c.json")) == (
        toml
    )


def test_cell_then_domains_then_pools_then_tenants(tmp_path: Path) -> None:
    said = read(
        written(
            tmp_path,
            "[tenants.t]\n[pools.p]\n[domains.d]\ndimensions = []\n[cell.tenant_defaults]\n",
        )
    )
    assert proposed(said) == [
        [("cell", "main")],
        [("domain", "d")],
        [("pool", "p")],
        [("tenant", "t")],
    ]


def test_the_file_may_name_author_and_reason(tmp_path: Path) -> None:
    said = read(written(tmp_path, 'author = "ops"\n[tenants.t]\n'))
    (tenant,) = list(stages(said, cell="main", author="me", reason="because"))[-1]
    assert (tenant.author, tenant.reason) == ("ops", "because")


DIMENSION = '[[domains.d.dimensions]]\nname="r"\nunit="requests"\nkind="sliding"\n'


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            f"{DIMENSION}limit = 1.5\n",
            "Expected a whole number, but got a fraction - at `domains.d.dimensions[0].limit`",
        ),
        (
            f'{DIMENSION}limit = "lots"\n',
            "Expected a whole number, but got text - at `domains.d.dimensions[0].limit`",
        ),
        (
            DIMENSION,
            "Object missing required field `limit` - at `domains.d.dimensions[0]`",
        ),
        (
            "[domains.d]\n",
            "Object missing required field `dimensions` - at `domains.d`",
        ),
        ("pools = 3\n", "Expected a table, but got a whole number - at `pools`"),
        ("[tenants]\nt = 3\n", "Expected a table, but got a whole number - at `tenants.t`"),
    ],
)
def test_a_wrong_value_is_told_in_the_words_of_the_file(
    tmp_path: Path, text: str, sentence: str
) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        read(written(tmp_path, text))


def test_a_number_that_no_word_holds_is_named_before_anything_is_sent(tmp_path: Path) -> None:
    said = read(written(tmp_path, f"[tenants.t]\nweight = {2**63}\n"))
    with pytest.raises(ValueError, match=f"tenant t: Expected 64 bits, but got {2**63}"):
        stages(said, cell="main", author="me", reason="a test")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[tenants.t]\nwieght = 2\n", "wieght"),
        ("[domains.d]\n", "dimensions"),
        ('[tenants.t]\nweight = "two"\n', "weight"),
        (f'{PRICES}currency = "EUR"\ninput_micros = 2.5\n', "input_micros"),
        (f'{PRICES}currency = "EUR"\ncall_micros = "cheap"\n', "call_micros"),
        (f"{PRICES}call_micros = 1\n", "currency"),
        ("surprise = 1\n", "surprise"),
        ("[tenants.t\n", "Expected"),
    ],
)
def test_a_mistake_is_named_before_anything_is_sent(tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        read(written(tmp_path, text))
