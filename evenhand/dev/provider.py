"""A provider on loopback with hard limits, its own record of every call and its own judgement.

It reads prompts from the traces by their reference, so that no caller can lie about their size,
counts prompt and output ceiling when a call arrives, and takes as long as the answer would. A call
above a limit is refused with 429 for one window and stays in the record, since a provider counts
what arrives.

It misbehaves where the reference asks for it: `code/7?after_ms=500` takes longer, `code/7?silent`
is executed and never answered, `code/7?reset` is executed while its connection is cut. What became
of a call is told at `/calls/<idempotency key>`.
"""

import argparse
import asyncio
import contextlib
import json
import signal
import socket
import struct
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple, TextIO
from urllib.parse import parse_qsl

from evenhand.dev.judge import Judge, Limits
from evenhand.dev.play import Prompt, prompts

Answer = tuple[int, Mapping[str, Any]]

_OVER = 429
_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", _OVER: "Too Many Requests"}
_BODY_BYTES_MAX = 65_536
"""A call names its prompt; nothing longer is sensible."""
_HUNG_UP: Answer = (0, {})
_SILENT: Answer = (1, {})
"""What is no answer: the caller meets a cut connection, or nothing."""


class Fate(NamedTuple):
    """What happens to a call."""

    reference: str
    after_ms: int = 0
    silent: bool = False
    reset: bool = False

    @classmethod
    def read(cls, payload_ref: str) -> "Fate":
        """The prompt's reference and what follows its question mark.

        >>> Fate.read("code/7?reset&after_ms=9")
        Fate(reference='code/7', after_ms=9, silent=False, reset=True)
        """
        reference, _, query = payload_ref.partition("?")
        asked = dict(parse_qsl(query, keep_blank_values=True))
        after_ms = int(asked.get("after_ms", 0))
        return cls(reference, after_ms, silent="silent" in asked, reset="reset" in asked)


class Provider:
    """Serves calls; one line of record each, written when it arrives."""

    def __init__(
        self, limits: Limits, texts: Mapping[str, Prompt], record: TextIO, *, speed_up: int
    ) -> None:
        self._judge = Judge(limits)
        self._texts = texts
        self._record = record
        self._speed_up = speed_up
        self._calls: dict[str, Mapping[str, Any]] = {}
        """What became of each accepted call, by its idempotency key."""
        self._going_on: set[asyncio.Task[Answer]] = set()

    async def answer(self, method: str, path: str, body: bytes) -> Answer:
        """One request; a call takes as long as its answer would."""
        if (method, path) == ("GET", "/verdict"):
            return 200, self.verdict()
        if method == "GET" and path.startswith("/calls/"):
            call = self._calls.get(path.removeprefix("/calls/"))
            return (404, {"error": "No such call"}) if call is None else (200, call)
        if (method, path) != ("POST", "/calls"):
            return 404, {"error": f"Expected POST /calls or GET /verdict, got {method} {path}"}
        arrived_ns = time.monotonic_ns()
        try:
            asked = json.loads(body)
            fate = Fate.read(asked["payload_ref"])
            prompt = self._texts[fate.reference]
            ceiling = int(asked["output_tokens_max"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return 400, {"error": f"Expected a known payload_ref and a ceiling: {error!r}"}
        tokens = prompt.prompt_tokens + ceiling
        over = self._judge.arrive(arrived_ns, tokens=tokens, key=asked.get("idempotency_key"))
        service_ms = 0 if over else prompt.service_ms(self._speed_up) + fate.after_ms
        line = {
            "arrived_ns": arrived_ns,
            "tenant": asked.get("tenant"),
            "operation": asked.get("operation"),
            "idempotency_key": asked.get("idempotency_key"),
            "tokens": tokens,
            "service_ms": service_ms,
            "over": over,
        }
        self._record.write(json.dumps(line) + "\n")
        if over:
            self._judge.leave()
            return _OVER, {"error": f"Over the limit of {', '.join(over)}"}
        usage = {
            "prompt_tokens": prompt.prompt_tokens,
            "output_tokens": min(prompt.generated_tokens, ceiling),
        }
        work = asyncio.create_task(self._work(asked.get("idempotency_key"), service_ms, usage))
        self._going_on.add(work)
        work.add_done_callback(self._going_on.discard)
        if fate.reset:
            return _HUNG_UP
        # A caller that hangs up ends nothing here.
        answer = await asyncio.shield(work)
        return _SILENT if fate.silent else answer

    async def _work(self, key: str | None, service_ms: int, usage: Mapping[str, int]) -> Answer:
        self._calls[str(key)] = {"state": "running"}
        await asyncio.sleep(service_ms / 1000)
        self._judge.leave()
        self._calls[str(key)] = {"state": "completed", "usage": usage}
        return 200, {"usage": usage}

    def verdict(self) -> dict[str, Any]:
        """The judge's verdict, its limits beside it."""
        said = self._judge.verdict()
        return {**asdict(said), "clean": said.clean, "limits": asdict(self._judge.limits)}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection: requests in turn until the caller hangs up."""
        with contextlib.closing(writer), contextlib.suppress(ConnectionError):
            while (request := await _read(reader)) is not None:
                answer = status, body = await self.answer(*request)
                if answer is _HUNG_UP:
                    _reset(writer)
                    return
                if answer is _SILENT:
                    await reader.read()
                    return
                content = json.dumps(body).encode()
                wait = (
                    f"retry-after-ms: {self._judge.limits.window_ms}\r\n" if status == _OVER else ""
                )
                head = (
                    f"HTTP/1.1 {status} {_REASONS[status]}\r\ncontent-type: application/json\r\n"
                    f"{wait}content-length: {len(content)}\r\n\r\n"
                )
                writer.write(head.encode() + content)
                await writer.drain()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Cut the connection: the caller meets an error; without a linger of 0 it would meet an end."""
    writer.get_extra_info("socket").setsockopt(
        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
    )
    writer.transport.abort()


async def _read(reader: asyncio.StreamReader) -> tuple[str, str, bytes] | None:
    """The next request of a connection; None at its end, or if it speaks no HTTP."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *rest = head.split("\r\n")
        method, path, _version = line.split(" ")
        fields = dict(field.lower().split(": ", 1) for field in rest if field)
        length = int(fields.get("content-length", "0"))
        if not 0 <= length <= _BODY_BYTES_MAX:
            return None
        return method, path, await reader.readexactly(length)
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
        return None


async def _run(options: argparse.Namespace) -> None:
    limits = Limits(
        requests=options.requests,
        tokens=options.tokens,
        slots=options.slots,
        window_ms=options.window_ms,
    )
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    # Line buffering: what has arrived is on disk, whatever ends this process.
    with options.record.open("w", buffering=1) as record:
        provider = Provider(limits, prompts(), record, speed_up=options.speed_up)
        await asyncio.start_server(provider.serve, "127.0.0.1", options.port)
        await stop.wait()
    options.verdict.write_text(json.dumps(provider.verdict(), indent=1))


def main() -> None:
    """Run until SIGTERM; the verdict is written then."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("port", "requests", "tokens", "slots", "window-ms", "speed-up"):
        parser.add_argument(f"--{name}", type=int, required=True)
    for name in ("record", "verdict"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    asyncio.run(_run(parser.parse_args()))


if __name__ == "__main__":
    main()
