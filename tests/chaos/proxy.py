"""A port on loopback that can be cut: its connections are lost, and it gives no new ones."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from evenhand.dev.node import LOOPBACK, free_port

CHUNK_BYTES = 65_536


class Port:
    """Forwards to another port until it is cut, and again after it is healed."""

    def __init__(self, target: int, *, delay_s: Callable[[], float] | None = None) -> None:
        """`delay_s`: how long each chunk that a client sends is on its way, at least."""
        self.number = free_port()
        self._target, self._delay_s = target, delay_s
        self._whole = threading.Event()
        self._whole.set()
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server((LOOPBACK, self.number), reuse_port=False)
        threading.Thread(target=self._accept, name=f"port-{self.number}", daemon=True).start()

    def cut(self) -> None:
        """Reset every connection; refuse new ones."""
        self._whole.clear()
        with self._lock:
            for end in self._open:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def heal(self) -> None:
        """Let connections through again."""
        self._whole.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.cut()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if not self._whole.is_set():
                client.close()
                continue
            try:
                server = socket.create_connection((LOOPBACK, self._target))
            except OSError:
                client.close()
                continue
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for source, sink, delay_s in ((client, server, self._delay_s), (server, client, None)):
                with self._lock:
                    self._open.add(source)
                pumped = (source, sink, delay_s)
                threading.Thread(target=self._pump, args=pumped, daemon=True).start()

    def _pump(
        self, source: socket.socket, sink: socket.socket, delay_s: Callable[[], float] | None
    ) -> None:
        with contextlib.suppress(OSError):
            while chunk := source.recv(CHUNK_BYTES):
                if delay_s is not None:
                    time.sleep(delay_s())
                sink.sendall(chunk)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._open.discard(source)
        source.close()
