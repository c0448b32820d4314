"""A configuration file: checked whole, and proposed in an order in which each part is known."""

import json
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
