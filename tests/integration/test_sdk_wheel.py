"""The wheel inside a service that has packages named like ours, and without any extra."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from evenhand.dev.broker import Broker
from streams.shell.settings import Settings
from tests.support.answering import answering

ROOT = Path(__file__).parents[2]
FOREIGN = ("api", "schemas", "streams", "projections")
EXTRAS = ("confluent_kafka", "fastavro", "avro", "typer", "rich", "fastapi", "rocksdict", "psutil")

SERVICE = """
import sys
import api, schemas, streams, projections
assert api.OWNER == schemas.OWNER == streams.OWNER == projections.OWNER == "the service"

import evenhand
from evenhand import Client, Kafka, Worker, _words
from evenhand.testing import FakeEvenhand

assert evenhand.__file__.startswith(sys.prefix), evenhand.__file__
assert _words.inputs.__name__ == "evenhand._schemas.inputs"
intent = dict(
    pool="p", domain="d", prompt_tokens=1, output_tokens_max=2, start_within_ms=3,
    idempotency_key="k",
)
with Client(url=sys.argv[1], api_key="k") as client:
    assert client.submit(**intent).state == "admitted"

word = _words.inputs.LeaveAnnounced(member="m", member_epoch="e")
assert _words.codec.decode(_words.codec.encode(word)) == word

kafka = Kafka(bootstrap=sys.argv[2], prefix=sys.argv[3])
with Client(url=sys.argv[1], via=kafka, tenant="t", user="u") as client:
    told = client.submit(**intent)
    assert told.input.startswith("submissions:"), told
with Worker(lambda _: None, pool="p", via=kafka):
    pass
assert not [name for name in sys.modules if name.startswith("schemas.")]
print("works")
"""

BARE = f"""
import sys
for name in {EXTRAS}:
    sys.modules[name] = None
import evenhand
from evenhand import *
from evenhand.testing import FakeEvenhand
with Client(url=sys.argv[1], api_key="k") as client:
    told = client.submit(
        pool="p", domain="d", prompt_tokens=1, output_tokens_max=2, start_within_ms=3,
        idempotency_key="k",
    )
assert told.state == "admitted"
print("works")
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A service's folder beside a virtual environment that has the wheel."""
    home: Path = tmp_path_factory.mktemp("service")
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    flags = ("--no-deps", "--no-build-isolation", "--no-index")
    run(*pip, "wheel", *flags, "--wheel-dir", str(home), str(ROOT))
    run(sys.executable, "-m", "venv", "--without-pip", str(home / "venv"))
    python = home / "venv" / "bin" / "python"
    (wheel,) = home.glob("evenhand-*.whl")
    run(*pip, "--python", str(python), "install", "--no-deps", "--no-index", str(wheel))
    # Everything that it depends on, as it is here.
    (packages,) = (home / "venv" / "lib").glob("python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    for name in FOREIGN:
        (home / "src" / name).mkdir(parents=True)
        (home / "src" / name / "__init__.py").write_text('OWNER = "the service"\n')
    (home / "src" / "service.py").write_text(SERVICE)
    (home / "src" / "bare.py").write_text(BARE)
    return home


def run(*command: str, cwd: Path | None = None) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


ADMITTED = (202, {}, {"operation": "ab", "state": "admitted"})


def test_both_transports_work_beside_packages_of_the_same_names(
    service: Path, broker: Broker, begun: Settings
) -> None:
    python = service / "venv" / "bin" / "python"
    with answering(ADMITTED) as server:
        said = run(
            str(python),
            "service.py",
            server.url,
            broker.bootstrap,
            begun.prefix,
            cwd=service / "src",
        )
    assert said == "works\n"


def test_it_works_over_http_without_any_extra(service: Path) -> None:
    with answering(ADMITTED) as server:
        said = run(
            str(service / "venv" / "bin" / "python"), "bare.py", server.url, cwd=service / "src"
        )
    assert said == "works\n"


def test_the_repository_needs_no_extra_either() -> None:
    with answering(ADMITTED) as server:
        assert run(sys.executable, "-c", BARE, server.url, cwd=ROOT) == "works\n"
