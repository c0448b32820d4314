"""The provider as a caller meets it, on a loopback port and by its record."""

import asyncio
import io
import json
from typing import Any

import pytest

from evenhand.dev.judge import Limits
from evenhand.dev.play import Prompt
from evenhand.dev.provider import Provider

TEXTS = {"p/0": Prompt(100, 5)}
CALL = {"payload_ref": "p/0", "output_tokens_max": 10, "tenant": "a", "idempotency_key": "k"}


def _provider(**limits: int) -> tuple[Provider, io.StringIO]:
    record = io.StringIO()
    allowed = Limits(**({"requests": 9, "tokens": 999, "slots": 9, "window_ms": 60_000} | limits))
    return Provider(allowed, TEXTS, record, speed_up=1000), record


def _ask(provider: Provider, *bodies: dict[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    async def asked() -> list[tuple[int, dict[str, Any]]]:
        server = await asyncio.start_server(provider.serve, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
        answers = []
        for body in bodies:
            content = json.dumps(body).encode()
            writer.write(b"POST /calls HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(content))
            writer.write(content)
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = int(head.lower().split("content-length: ")[1].split("\r\n")[0])
            answers.append((int(head.split()[1]), json.loads(await reader.readexactly(length))))
        writer.close()
        await writer.wait_closed()
        server.close()
        await server.wait_closed()
        return answers

    return asyncio.run(asked())


def test_a_call_is_answered_with_the_usage_that_the_trace_recorded() -> None:
    provider, record = _provider()
    answers = _ask(provider, CALL, {**CALL, "idempotency_key": "l", "output_tokens_max": 3})
    assert answers == [
        (200, {"usage": {"prompt_tokens": 100, "output_tokens": 5}}),
        (200, {"usage": {"prompt_tokens": 100, "output_tokens": 3}}),
    ]
    lines = [json.loads(line) for line in record.getvalue().splitlines()]
    assert [(line["tokens"], line["over"]) for line in lines] == [(110, []), (103, [])]
    assert provider.verdict()["clean"]


def test_a_call_over_a_limit_is_refused_and_stays_in_the_record() -> None:
    provider, record = _provider(tokens=150)
    answers = _ask(provider, CALL, {**CALL, "idempotency_key": "l"})
    assert [status for status, _ in answers] == [200, 429]
    assert json.loads(record.getvalue().splitlines()[1])["over"] == ["tokens"]
    assert provider.verdict()["overshoot_calls"] == 1
    assert provider.verdict()["overshoot_tokens"] == 70


def test_nonsense_is_answered_and_counts_as_no_call() -> None:
    provider, _record = _provider()
    answers = _ask(provider, {"payload_ref": "q/0", "output_tokens_max": 1}, {"payload_ref": "p/0"})
    assert [status for status, _ in answers] == [400, 400]
    assert provider.verdict()["calls"] == 0


def test_the_verdict_is_there_over_http_and_unknown_paths_are_not() -> None:
    provider, _record = _provider()
    status, body = asyncio.run(provider.answer("GET", "/verdict", b""))
    assert (status, body["limits"]["slots"]) == (200, 9)
    assert asyncio.run(provider.answer("GET", "/calls", b""))[0] == 404


def test_what_became_of_a_call_is_told_by_its_key() -> None:
    provider, _record = _provider()

    async def asked() -> list[tuple[int, Any]]:
        slow = {**CALL, "payload_ref": "p/0?after_ms=30", "idempotency_key": "slow"}
        call = asyncio.create_task(provider.answer("POST", "/calls", json.dumps(slow).encode()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        running = await provider.answer("GET", "/calls/slow", b"")
        await call
        completed = await provider.answer("GET", "/calls/slow", b"")
        return [running, completed, await provider.answer("GET", "/calls/never", b"")]

    running, completed, never = asyncio.run(asked())
    assert running == (200, {"state": "running"})
    usage = {"prompt_tokens": 100, "output_tokens": 5}
    assert completed == (200, {"state": "completed", "usage": usage})
    assert never[0] == 404


async def _hears(provider: Provider, body: dict[str, Any], wait_s: float) -> bytes | None:
    """What a caller hears; None for nothing at all."""
    server = await asyncio.start_server(provider.serve, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
    content = json.dumps(body).encode()
    writer.write(b"POST /calls HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(content) + content)
    try:
        return await asyncio.wait_for(reader.read(1), wait_s)
    except TimeoutError:
        return None
    finally:
        writer.close()
        server.close()
        await server.wait_closed()


async def _until_completed(provider: Provider, key: str) -> None:
    await asyncio.gather(*provider._going_on)
    assert (await provider.answer("GET", f"/calls/{key}", b""))[1]["state"] == "completed"


def test_a_silent_call_is_executed_and_never_answered() -> None:
    provider, _record = _provider()

    async def meet() -> None:
        assert await _hears(provider, {**CALL, "payload_ref": "p/0?silent"}, 0.1) is None
        await _until_completed(provider, "k")

    asyncio.run(meet())
    assert provider.verdict()["slots"] == 0


def test_a_reset_call_is_executed_while_its_connection_is_cut() -> None:
    provider, _record = _provider()

    async def meet() -> None:
        with pytest.raises(ConnectionResetError):
            await _hears(provider, {**CALL, "payload_ref": "p/0?reset&after_ms=20"}, 5.0)
        assert (await provider.answer("GET", "/calls/k", b""))[1] == {"state": "running"}
        await _until_completed(provider, "k")

    asyncio.run(meet())
    assert provider.verdict()["slots"] == 0
