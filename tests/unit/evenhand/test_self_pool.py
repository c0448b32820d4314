"""Who waits for permission and goes away leaves nothing held behind."""

import asyncio
import threading

import pytest

from evenhand import AsyncClient, Client, NotSent
from evenhand.testing import FakeEvenhand
from schemas.bodies import State
from schemas.ids import operation_id
from tests.support.kafka import until

ASKED = {"domain": "default", "prompt_tokens": 1, "output_tokens_max": 1}
KEY = "the-only-one"
OPERATION = operation_id(pool="self", tenant="t", user="me", idempotency_key=KEY).hex()  # type: ignore[arg-type]


def client(fake: FakeEvenhand) -> Client:
    return Client(transport=fake.transport("t"), via=fake, tenant="t", user="me")


def test_a_caller_that_is_cancelled_while_it_waits_cancels_its_operation() -> None:
    fake = FakeEvenhand(slots=0)
    door = fake.transport("t")

    def state() -> State:
        return door.get(OPERATION, at_least=None, wait_s=0).state

    async def go_away() -> None:
        async with AsyncClient(
            transport=fake.async_transport("t"), via=fake, tenant="t", user="me"
        ) as client:

            async def wait() -> None:
                async with client.acquire(idempotency_key=KEY, **ASKED):
                    pytest.fail("Expected no permission, since there is no slot")

            waiting = asyncio.create_task(wait())
            await asyncio.to_thread(until, lambda: OPERATION in str(fake_rows(fake)), "the wait")
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting

    asyncio.run(go_away())
    assert state() is State.CANCELLED


def fake_rows(fake: FakeEvenhand) -> list[str]:
    return [operation.hex() for operation in fake._cell._rows]


def test_two_callers_wait_for_the_only_place() -> None:
    fake = FakeEvenhand()
    inside, most, lock = 0, 0, threading.Lock()
    with Client(transport=fake.transport("t"), via=fake, tenant="t", user="me", places=1) as client:

        def call() -> None:
            nonlocal inside, most
            with client.acquire(**ASKED) as grant:
                with lock:
                    inside += 1
                    most = max(most, inside)
                grant.sent()
                with lock:
                    inside -= 1

        threads = [threading.Thread(target=call) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert most == 1


def test_a_key_whose_operation_has_ended_gives_no_second_permission() -> None:
    from evenhand.errors import OperationEnded  # noqa: PLC0415

    with client(FakeEvenhand()) as asking:
        with asking.acquire(idempotency_key=KEY, **ASKED):
            pass
        with pytest.raises(OperationEnded), asking.acquire(idempotency_key=KEY, **ASKED):
            pytest.fail("Expected no permission")


def test_acquire_needs_a_cell_to_link_to() -> None:
    fake = FakeEvenhand()
    with (
        Client(transport=fake.transport("t")) as asking,
        pytest.raises(ValueError, match="via"),
        asking.acquire(**ASKED),
    ):
        pytest.fail("Expected no permission")


def test_a_grant_that_is_given_back_is_not_granted_again() -> None:
    fake = FakeEvenhand()
    with client(fake) as asking:
        with pytest.raises(NotSent), asking.acquire(idempotency_key=KEY, **ASKED):
            raise NotSent
        door = fake.transport("t")
        until(
            lambda: door.get(OPERATION, at_least=None, wait_s=0).state is State.CANCELLED,
            "it to be cancelled",
        )
