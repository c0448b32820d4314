"""A real Kafka broker for development, the demo and tests, from whatever this machine has."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from evenhand.dev.container import ContainerNode, find_engine
from evenhand.dev.java import JavaNode, find_jars, find_java, resolve_jars
from evenhand.dev.node import KAFKA_VERSION

__all__ = ["Broker", "NoBroker", "NotOurs"]


class NoBroker(Exception):
    """No Kafka can be started here: install Java 17 or newer and Maven (or Docker or Podman, where
    the data need not stay in a folder), or set EVENHAND_BOOTSTRAP to the address of a running one.
    """  # noqa: D205 - one sentence, which is the message


class NotOurs(Exception):
    """The cluster of EVENHAND_BOOTSTRAP belongs to somebody else: it is used, never touched."""


class _Node(Protocol):
    """What the two ways to run Kafka have in common."""

    @property
    def bootstrap(self) -> str: ...
    @property
    def pid(self) -> int: ...
    def start(self) -> None: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def discard(self) -> None: ...


class Broker:
    """One Kafka node on loopback, gone when its launcher is gone, however that ends.

    Taken in this order: the cluster that EVENHAND_BOOTSTRAP names; Java 17 or newer, with jars that
    Maven resolves once; a container engine. Use it as a context manager, or call `start`, `stop`.

             start            kill
        new ───────► answers ──────► down      restart: down and up again, same data and address
                     ▲  │ ▲            │       pause and resume: alive, but silent between
                     │  │ └── start ───┘
               start │  ▼ stop
                     gone, and its data too if they were temporary
    """

    def __init__(
        self,
        *,
        data: Path | None = None,
        long_lived: bool = False,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Nothing happens before `start`.

        Args:
            data: a folder whose broker goes on where it was left, at the same address; only the
                Java form can. None means data that `stop` removes.
            long_lived: let both of Java's compilers work, which pays after some minutes; in a
                container they always do.
            tell: gets a sentence for a person before something that takes long.
        """
        self._data = data
        self._long_lived = long_lived
        self._tell = tell
        self._theirs = os.environ.get("EVENHAND_BOOTSTRAP")
        self._node: _Node | None = None

    def __enter__(self) -> Self:
        """As `start`; a start that fails leaves nothing."""
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """As `stop`."""
        self.stop()

    @property
    def ours(self) -> bool:
        """Whether this object may stop, kill and pause the broker."""
        return not self._theirs

    @property
    def bootstrap(self) -> str:
        """Where clients connect, `host:port`."""
        return self._theirs or self._running.bootstrap

    @property
    def pid(self) -> int:
        """The process that is Kafka; NotOurs as for `kill`."""
        return self._running.pid

    def start(self) -> None:
        """Start it, or start it again after `kill`, and wait until it answers.

        Raises:
            NoBroker: there is none to be had; the message says what to install.
            ProcessError: it can be had, but did not start; the message ends with its log.
        """
        if self._theirs:
            return
        if self._node is None:
            self._node = self._choose()
        self._node.start()

    def stop(self) -> None:
        """End it: SIGTERM, then SIGKILL after a bound. Harmless when it is down."""
        if self._node is not None:
            self._node.terminate()
            self._node.discard()
            self._node = None

    def kill(self) -> None:
        """SIGKILL. `start` goes on with the same data at the same address.

        That start takes 9 s longer: Kafka lets a node back only when its earlier life's session is
        over. A shorter session would let a busy machine fence a healthy broker.

        Raises:
            NotOurs: nothing was done.
        """
        self._running.kill()

    def restart(self) -> None:
        """End it in order and start it again; raises as `start` and `kill` do."""
        self._running.terminate()
        self.start()

    def pause(self) -> None:
        """Let it fall silent without ending, as a stalled machine would; raises as `kill`."""
        self._running.pause()

    def resume(self) -> None:
        """Let it go on after `pause`; raises as `kill`."""
        self._running.resume()

    @property
    def _running(self) -> _Node:
        if self._theirs:
            raise NotOurs(NotOurs.__doc__)
        assert self._node is not None, "Expected a broker that was started"
        return self._node

    def _choose(self) -> _Node:
        java, jars, maven = find_java(), find_jars(), shutil.which("mvn")
        if java and jars is None and maven:
            self._tell(f"Fetching Kafka {KAFKA_VERSION} with Maven; only the first time.")
            jars = resolve_jars(maven)
        if java and jars:
            return JavaNode(java, jars, self._data, long_lived=self._long_lived)
        if self._data is None and (engine := find_engine()):
            self._tell(
                f"Starting Kafka {KAFKA_VERSION} in a container; the first time it is pulled."
            )
            return ContainerNode(engine)
        raise NoBroker(" ".join((NoBroker.__doc__ or "").split()))
