"""Each import contract breaks when somebody plants what it forbids."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("schemas", "streams", "projections", "api", "evenhand")
PLANTED = [
    ("house", "schemas/ids.py", "import streams.core.limits"),
    ("write side", "streams/core/limits.py", "import streams.shell.clock"),
    ("core", "streams/core/tables.py", "import streams.core.state"),
    ("purity", "streams/core/limits.py", "import time"),
    ("door", "api/auth.py", "import streams.core.limits"),
    ("asking", "api/routes/tenants.py", "import projections.follower"),
    ("audit", "evenhand/audit/chain.py", "import streams.core.windows"),
    ("one door: confluent_kafka", "streams/shell/cell.py", "import confluent_kafka"),
    ("one door: rocksdict", "streams/shell/cell.py", "import rocksdict"),
    ("one door: fastavro", "streams/shell/cell.py", "import fastavro"),
    ("one door: avro", "schemas/codec.py", "import avro"),
    ("one door: httpx", "evenhand/worker.py", "import httpx"),
    ("one door: fastapi", "projections/queries.py", "import fastapi"),
    ("one door: uvicorn", "api/app.py", "import uvicorn"),
    ("one door: typer", "evenhand/worker.py", "import typer"),
    ("one door: rich", "evenhand/worker.py", "import rich"),
    ("light SDK", "evenhand/testing.py", "import projections.queries"),
]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for package in PACKAGES:
        ignore = shutil.ignore_patterns("__pycache__", "traces")
        shutil.copytree(ROOT / package, tmp_path / package, ignore=ignore)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def broken(folder: Path) -> set[str]:
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [program, "--no-cache"], cwd=folder, capture_output=True, text=True, check=False
    )
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    found = {line.removesuffix(" BROKEN") for line in lines if line.endswith(" BROKEN")}
    assert found or done.returncode == 0, done.stdout + done.stderr
    return found


def test_planting_a_forbidden_import_breaks_its_contract_and_the_tree_as_it_is_breaks_none(copy):
    assert broken(copy) == set()
    for _, file, line in PLANTED:
        with (copy / file).open("a") as module:
            module.write(f"\n{line}\n")
    names = broken(copy)
    for name, file, line in PLANTED:
        assert any(one.startswith(name) for one in names), f"{line} in {file} breaks nothing"


def test_the_light_sdk_is_all_of_evenhand_but_commands_and_tools():
    tools = {"__init__", "__main__", "audit", "cli", "dev"}
    sdk = {path.stem for path in (ROOT / "evenhand").iterdir() if path.suffix == ".py"} - tools
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (light,) = (
        contract
        for contract in settings["tool"]["importlinter"]["contracts"]
        if contract["name"].startswith("light SDK")
    )
    assert sorted(light["source_modules"]) == sorted(f"evenhand.{name}" for name in sdk)
