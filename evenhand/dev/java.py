"""Kafka on this machine's own Java: jars from Maven Central, resolved once per user."""

import fcntl
import os
import re
import secrets
import shutil
import subprocess
import tempfile
from pathlib import Path

from evenhand.dev.node import (
    HEAP,
    KAFKA_VERSION,
    LOOPBACK,
    START_TIMEOUT_S,
    answers,
    cluster_id,
    free_port,
    is_free,
    settings,
)
from evenhand.dev.processes import Process, ProcessError, run

JAVA_MAJOR_MIN = 17
"""Kafka 4 runs on nothing older."""

_HERE = Path(__file__).parent

_COMPILE_ONCE = "-XX:TieredStopAtLevel=1"
"""A development broker lives for minutes: with the second compiler it spends more of them compiling
than the better code saves (39 s of CPU instead of 23 in a play of 30 s). After some
minutes both make it need half of the CPU: a thread that serves requests 20 % of a core, not 38."""

_ASK_TIMEOUT_S = 20.0
_FORMAT_TIMEOUT_S = 60.0
_RESOLVE_TIMEOUT_S = 540.0
"""45 MB; 40 s here. A slow line needs minutes; nobody should stare at it for ten."""


class PortTaken(ProcessError):
    """Another program listens on the port that this broker's clients know. It was not started."""


def find_java() -> str | None:
    """The Java of JAVA_HOME, else the one on the path; None if it is missing or too old."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(f"{home}/bin/java" if home else "java") or shutil.which("java")
    if java is None:
        return None
    said = subprocess.run(  # noqa: S603 - a program that the user chose
        [java, "-version"], capture_output=True, text=True, timeout=_ASK_TIMEOUT_S, check=False
    )
    version = re.search(r'version "(\d+)', said.stderr)
    return java if version and int(version[1]) >= JAVA_MAJOR_MIN else None


def find_jars() -> Path | None:
    """Kafka's jars in the user's cache, if they were resolved before."""
    jars = _jars()
    return jars if jars.is_dir() else None


def resolve_jars(maven: str) -> Path:
    """Fetch Kafka's jars into the user's cache. Safe beside other processes that do the same.

    Raises:
        Died: Maven failed, mostly for want of a network; the cache is as before.
        NotReady: the bound passed; as above.
    """
    jars = _jars()
    jars.parent.mkdir(parents=True, exist_ok=True)
    unfinished = jars.with_name(f"{jars.name}.unfinished")
    with jars.with_name(f"{jars.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # ends with this process, however that ends
        if jars.is_dir():
            return jars
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={unfinished}"]
        try:
            run(
                "Maven",
                [maven, "-q", "-B", "-f", str(_HERE / "pom.xml"), *goal],
                log=unfinished / "maven.log",
                timeout_s=_RESOLVE_TIMEOUT_S,
            )
            unfinished.rename(jars)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return jars


class JavaNode:
    """A broker in a JVM of its own, with its data, its ports and its log in one folder."""

    def __init__(
        self, java: str, jars: Path, data: Path | None, *, long_lived: bool = False
    ) -> None:
        """`data` is made if missing; None means a temporary folder, which `discard` removes."""
        self._java = [java, f"-Dlog4j2.configurationFile={_HERE / 'log4j2.yaml'}"]
        self._java += [] if long_lived else [_COMPILE_ONCE]
        self._java += ["-XX:+UseSerialGC", "-cp", f"{jars}/*"]
        self._temporary = data is None
        self._data = data or Path(tempfile.mkdtemp(prefix="evenhand-broker-"))
        self._data.mkdir(parents=True, exist_ok=True)
        self._properties = self._data / "server.properties"
        self._log = self._data / "broker.log"
        self._process: Process | None = None

    @property
    def bootstrap(self) -> str:
        """Where clients connect; the same over all lives of the data."""
        return f"{LOOPBACK}:{_kept_port(self._properties)}"

    @property
    def pid(self) -> int:
        """The JVM's own."""
        return self._jvm.pid

    def start(self) -> None:
        """Start and wait for the first answer.

        Raises:
            Died: with the end of the broker's log.
            NotReady: it did not answer within two minutes and was killed.
            PortTaken: as it says; often by a broker that runs on the same data.
        """
        if not self._properties.exists():
            self._format()
        port = _kept_port(self._properties)
        if not is_free(port):
            raise PortTaken(f"Expected port {port} for {self._data} to be free, it is not.")
        argv = [*self._java, HEAP, "kafka.Kafka", str(self._properties)]
        clean_up = ["rm", "-rf", str(self._data)] if self._temporary else []
        self._process = Process("the broker", argv, log=self._log, last_act=clean_up)
        try:
            self._process.wait_until(lambda: answers(port), "an answer", START_TIMEOUT_S)
        except BaseException:
            self._process.kill()
            raise

    def terminate(self) -> None:
        """SIGTERM, then SIGKILL after a bound. Harmless when it is down or never was up."""
        if self._process is not None:
            self._process.terminate()

    def kill(self) -> None:
        """SIGKILL."""
        self._jvm.kill()

    def pause(self) -> None:
        """SIGSTOP."""
        self._jvm.pause()

    def resume(self) -> None:
        """SIGCONT."""
        self._jvm.resume()

    def discard(self) -> None:
        """Remove the data if it was temporary. The node cannot start again then."""
        if self._temporary:
            shutil.rmtree(self._data, ignore_errors=True)

    @property
    def _jvm(self) -> Process:
        assert self._process is not None, "Expected a broker that was started"
        return self._process

    def _format(self) -> None:
        """Choose ports and make an empty log. The properties come last: they say it is done."""
        told = settings(port=free_port(), controller_port=free_port())
        told["log.dirs"] = str(self._data / "log")
        draft = self._properties.with_suffix(".draft")
        draft.write_text("".join(f"{name}={value}\n" for name, value in told.items()))
        cluster = cluster_id(secrets.token_bytes(16))
        tool = ["kafka.tools.StorageTool", "format", "--ignore-formatted"]
        tool += ["-t", cluster, "-c", str(draft)]
        run("Formatting", [*self._java, *tool], log=self._log, timeout_s=_FORMAT_TIMEOUT_S)
        draft.rename(self._properties)


def _jars() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "evenhand" / f"kafka-{KAFKA_VERSION}"


def _kept_port(properties: Path) -> int:
    kept = re.search(r"^advertised\.listeners=.*:(\d+)$", properties.read_text(), re.MULTILINE)
    assert kept, f"Expected the port of a broker in {properties}"
    return int(kept[1])
