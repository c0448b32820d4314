"""The containers that `docker compose up` starts, checked without starting them."""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml

from evenhand.dev.container import IMAGE
from evenhand.dev.node import HEAP, KAFKA_VERSION, settings

ROOT = Path(__file__).parents[2]
COMPOSE = ROOT / "docker-compose.yml"
DOCKERFILE = ROOT / "Dockerfile"
PROGRAMS = ("topics", "scheduler-a", "scheduler-b", "api")

# Where the broker listens differs between one machine and a network of containers.
PLACES = {
    "listeners",
    "advertised.listeners",
    "listener.security.protocol.map",
    "controller.quorum.voters",
}


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    services: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())["services"]
    return services


def against_the_specification(file: Path) -> subprocess.CompletedProcess[str]:
    """The Compose Specification's own schema, which check-jsonschema carries."""
    asked = ["-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(file)]
    return subprocess.run([sys.executable, *asked], capture_output=True, text=True, check=False)


def mounted(service: dict[str, Any], folder: str) -> str:
    (source,) = (it.partition(":")[0] for it in service["volumes"] if it.endswith(f":{folder}"))
    return str(source)


def has_compose(docker: str | None) -> bool:
    asked: Sequence[str] = [docker or "docker", "compose", "version"]
    return (
        docker is not None
        and not subprocess.run(asked, capture_output=True, check=False).returncode
    )


def test_the_file_is_valid_against_the_compose_specification() -> None:
    checked = against_the_specification(COMPOSE)
    assert checked.returncode == 0, checked.stdout


def test_the_specification_would_notice_a_misspelt_key(tmp_path: Path) -> None:
    planted = tmp_path / "docker-compose.yml"
    planted.write_text(COMPOSE.read_text().replace("depends_on:", "depends_upon:", 1))
    checked = against_the_specification(planted)
    assert checked.returncode == 1
    assert "depends_upon" in checked.stdout


def test_compose_itself_accepts_the_file() -> None:
    docker = shutil.which("docker")
    if not has_compose(docker):
        pytest.skip("needs a docker client with compose")
    subprocess.run([str(docker), "compose", "-f", str(COMPOSE), "config", "-q"], check=True)


def test_broker_two_schedulers_api_and_the_topics_they_need(services: dict[str, Any]) -> None:
    assert set(services) == {"broker", *PROGRAMS}
    commands = [" ".join(services[name]["command"]) for name in PROGRAMS]
    assert commands == ["topics apply", "scheduler", "scheduler", "api"]


@pytest.mark.parametrize("command", ["topics apply", "scheduler", "api", "keys create"])
def test_what_the_containers_run_exists(command: str) -> None:
    asked = [sys.executable, "-m", "evenhand", *command.split(), "--help"]
    subprocess.run(asked, capture_output=True, check=True)


def test_topics_wait_for_the_broker_and_everybody_for_the_topics(
    services: dict[str, Any],
) -> None:
    assert services["topics"]["depends_on"] == {"broker": {"condition": "service_healthy"}}
    for name in PROGRAMS[1:]:
        assert services[name]["depends_on"] == {
            "topics": {"condition": "service_completed_successfully"}
        }


def test_no_two_programs_share_tables(services: dict[str, Any]) -> None:
    folders = {services[name]["environment"]["EVENHAND_DATA_DIR"] for name in PROGRAMS}
    (folder,) = folders
    volumes = [mounted(services[name], folder) for name in PROGRAMS[1:]]
    assert len(set(volumes)) == 3


def test_every_program_is_confined(services: dict[str, Any]) -> None:
    assert re.search(r"^USER (?!0\b|root)", DOCKERFILE.read_text(), re.MULTILINE)
    for name in PROGRAMS:
        assert services[name]["read_only"], name
        assert services[name]["cap_drop"] == ["ALL"], name


def test_nothing_is_published_beyond_this_machine(services: dict[str, Any]) -> None:
    published = [port for it in services.values() for port in it.get("ports", [])]
    assert len(published) == 2
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_the_broker_is_told_what_the_launcher_tells_its_own(services: dict[str, Any]) -> None:
    told = {name: str(value) for name, value in services["broker"]["environment"].items()}
    assert told["KAFKA_HEAP_OPTS"] == HEAP
    for name, value in settings(port=1, controller_port=2).items():
        if name not in PLACES:
            assert told[f"KAFKA_{name.upper().replace('.', '_')}"] == value, name


def test_one_version_of_kafka_everywhere(services: dict[str, Any]) -> None:
    pom = ET.parse(ROOT / "evenhand" / "dev" / "pom.xml")
    space = {"m": "http://maven.apache.org/POM/4.0.0"}
    assert pom.findtext(".//m:dependency[m:artifactId='kafka_2.13']/m:version", None, space) == (
        KAFKA_VERSION
    )
    assert services["broker"]["image"] == f"apache/kafka:{KAFKA_VERSION}"
    assert IMAGE.endswith(services["broker"]["image"])


def test_the_image_is_built_from_every_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = set(project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"])
    copied = re.findall(r"^COPY (\w+) \1$", DOCKERFILE.read_text(), re.MULTILINE)
    sent = re.findall(r"^!(\w+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    assert set(copied) == packages
    assert set(sent) == packages | {"LICENSE"}
