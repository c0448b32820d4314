"""An attempt for handlers on event loops: the twin of `attempt.py`."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Unpack

from evenhand._attempt import CHECKPOINT_WAIT_S, BaseAttempt
from evenhand._intent import Identity, TurnIntent, turn
from evenhand._transport import Submission
from evenhand._words import events, inputs
from evenhand.errors import Unreachable


class AsyncAttempt(BaseAttempt):
    """A granted and started attempt: permission for one call to the provider, now.

    `sending` guards the call, `sent` reports it, `usage` says what it used. A long one tells how
    far it is by `checkpoint`; a run makes its calls by `turn`.
    """

    def __init__(
        self,
        grant: events.GrantIssued,
        *,
        report: Callable[[inputs.Input], None],
        now_ns: Callable[[], int],
        acquire: Callable[[Identity, Submission], AbstractAsyncContextManager["AsyncAttempt"]],
        waited_ns: int = 0,
    ) -> None:
        """Made by the SDK when it asks for the start, or `waited_ns` after a standing start."""
        super().__init__(grant, report=report, now_ns=now_ns, waited_ns=waited_ns)
        self._acquire = acquire

    async def checkpoint(
        self,
        state_ref: str | None,
        *,
        context_bytes: int | None = None,
        artifacts: int | None = None,
    ) -> None:
        """Record how far the work is; when this returns, another member can go on from there.

        One at a time. What was done since the last recorded one is lost with this process.

        Args:
            state_ref: where the state is; never the state itself.
            context_bytes: size of the context, where the tenant limits it.
            artifacts: how many there are so far, where the tenant limits them.

        Raises:
            EpochSuperseded: a newer attempt has taken over; cause no more effects.
            EvenhandError: refused otherwise, by the class of its code; the work may go on.
            Unreachable: no answer came; the last recorded one counts, whichever that is.
        """
        answer = self.report_checkpoint(state_ref, context_bytes, artifacts)
        try:
            await asyncio.wait_for(asyncio.wrap_future(answer), CHECKPOINT_WAIT_S)
        except TimeoutError:
            raise Unreachable("Expected an answer", operation=self.operation) from None

    def turn(self, **intent: Unpack[TurnIntent]) -> AbstractAsyncContextManager["AsyncAttempt"]:
        """Permission for one provider call of this run, as `Client.acquire` gives it.

        It is a child operation with a reservation of its own; the run itself holds none.

        Args:
            intent: the fields of `Intent`; domain, lane, tier and connection are the run's own,
                unless given.

        Raises:
            TurnsExhausted: the run has used up its turns.
            ParentNotRunning: the run has ended, or a newer attempt of it has taken over.
            EvenhandError: as `Client.acquire`.
        """
        asked = turn(self.grant, intent, idempotency_key=self.next_turn())
        return self._acquire(Identity(self.grant.tenant, self.grant.user), asked)
