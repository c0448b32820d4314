"""The twins say the same: names, arguments and promises."""

import inspect
import re
from collections.abc import Iterator

import pytest

from evenhand import AsyncAttempt, AsyncClient, AsyncWorker, Attempt, Client, Worker
from evenhand import _requests as requests
from evenhand._aio_self_pools import AsyncSelfPools
from evenhand._http import AsyncHttpTransport, HttpTransport
from evenhand._intent import Intent, PoolIntent, TurnIntent
from evenhand._self_pools import SelfPools
from evenhand._transport import AsyncTransport, Transport
from evenhand.testing import AsyncFakeTransport, FakeTransport
from schemas.bodies import Submit

TWINS = [
    (Client, AsyncClient),
    (Worker, AsyncWorker),
    (Attempt, AsyncAttempt),
    (SelfPools, AsyncSelfPools),
    (Transport, AsyncTransport),
    (HttpTransport, AsyncHttpTransport),
    (requests.KafkaTransport, requests.AsyncKafkaTransport),
]
ASYNC_NAMES = {"__aenter__": "__enter__", "__aexit__": "__exit__"}


def members(kind: type) -> Iterator[tuple[str, object]]:
    for name, member in vars(kind).items():
        if callable(member) or isinstance(member, property):
            plain = ASYNC_NAMES.get(name, name)
            if not plain.startswith("_") or plain in ("__init__", *ASYNC_NAMES.values()):
                yield plain, member


def same(text: str) -> str:
    """Twin's words in plain form: what only says that something is awaited is left out."""
    plain = re.sub(
        r"\b(?:collections\.abc\.)?Awaitable\[([^\[\]]*(?:\[[^\]]*\])?[^\[\]]*)\]", r"\1", text
    )
    return re.sub(r"Async(?=[A-Z])|\baio_|\basync |\bawait ", "", plain)


def signature(member: object) -> str:
    found = member.fget if isinstance(member, property) else member
    assert callable(found)
    return same(str(inspect.signature(inspect.unwrap(found))))


@pytest.mark.parametrize(("sync", "asynchronous"), TWINS)
def test_twins_have_the_same_names_arguments_and_docstrings(sync: type, asynchronous: type) -> None:
    ours, theirs = dict(members(sync)), dict(members(asynchronous))
    assert ours.keys() == theirs.keys()
    for name, member in ours.items():
        assert signature(member) == signature(theirs[name]), name
        assert inspect.getdoc(member) == inspect.getdoc(theirs[name]), name


@pytest.mark.parametrize(("sync", "asynchronous"), TWINS[:3])
def test_twins_promise_the_same(sync: type, asynchronous: type) -> None:
    assert inspect.getdoc(sync) == same(str(inspect.getdoc(asynchronous)))


@pytest.mark.parametrize("kind", [HttpTransport, requests.KafkaTransport, FakeTransport])
def test_every_transport_has_what_the_port_asks(kind: type) -> None:
    assert dict(members(Transport)).keys() <= dict(members(kind)).keys()


def test_the_double_has_both_forms() -> None:
    assert dict(members(FakeTransport)).keys() == dict(members(AsyncFakeTransport)).keys()


def test_an_intent_has_the_fields_of_a_submission() -> None:
    assert set(PoolIntent.__annotations__) == set(Submit.model_fields)
    assert set(Intent.__annotations__) == set(PoolIntent.__annotations__) - {
        "pool",
        "deadline_ms",
        "member",
        "parent",
    }


def test_a_turn_has_the_fields_of_an_intent_and_is_no_run() -> None:
    assert set(TurnIntent.__annotations__) == set(Intent.__annotations__) - {"turns_max", "tools"}
