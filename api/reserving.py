"""Permission for one call in one answer: an operation of pool `self`, granted and started.

    submit ─► join, beat ─► wait for the grant ─► start ─► 201
                               └─ not in time: cancel, leave ─► 429

Each reservation is a member of its own with one place, named by the operation and the key, so any
process of the API can renew and settle it, and none remembers it. A caller that does not renew
loses the member, which changes nothing for its call: the lease lasts on.
"""

import asyncio
import secrets
from typing import Any

from projections.queries import Queries
from projections.views.operation import Operation as Row
from schemas import bodies as b
from schemas import events as e
from schemas import inputs as i
from schemas import reservation_bodies as r
from schemas.codes import Code
from schemas.ids import (
    SELF_POOL,
    MemberEpoch,
    MemberId,
    OperationId,
    TenantId,
    member_of_key,
    operation_id,
)
from schemas.journal import Position
from schemas.phase import Phase
from schemas.problems import BudgetProblem
from schemas.topics import Topic

from .auth import Principal
from .door import Door
from .problems import Refused, instant, retry_fields
from .speaking import Decided, refusal, say
from .submission import submit

BEAT_EVERY_MS = 1_000
"""A third of the time to live that cells start with."""
_MAY_COME = frozenset((Phase.WAITING, Phase.PARKED, Phase.GRANTED, Phase.LEASED, Phase.REJECTED))
"""Not started yet; of a refused one the submission tells whether its key is bound."""
_NOW = 0


class Reserving:
    """One request for permission."""

    def __init__(self, door: Door, asker: Principal, key: str, body: r.Reserve) -> None:
        assert asker.tenant is not None, "Expected a tenant's key to name its tenant"
        assert asker.user is not None, "Expected a tenant's key to name its user"
        self._door, self._asker, self._key, self._body = door, asker, key, body
        self._tenant: TenantId = asker.tenant
        self._came_ms = self._now_ms()
        self.operation = operation_id(
            pool=SELF_POOL, tenant=asker.tenant, user=asker.user, idempotency_key=key
        )
        self._life: dict[str, Any] = {
            "member": member_of_key(asker.key_id, f"r-{self.operation.hex()}"),
            "member_epoch": MemberEpoch(secrets.token_hex(8)),
        }

    def _now_ms(self) -> int:
        return int(asyncio.get_running_loop().time() * 1000)

    async def reserve(self, asked: Queries, wait_ms: int) -> tuple[r.Reserved, bool]:
        """Permission, and whether this repeats an answer.

        Raises:
            Refused: the owner's code; or `budget-exhausted` with what binds, and the reservation is
                given up; or nobody knows, and the same key may be sent again.
        """
        known = asked.operation(self.operation)
        if known is not None and known.phase not in _MAY_COME:
            return _reserved(self.operation, await self._submitted(asked)), True
        place = await self._join()
        try:
            row = await self._submitted(asked)
            if row.phase not in _MAY_COME:
                await self._leave()
                return _reserved(self.operation, row), True
            grant = await self._granted(place, wait_ms)
            if grant is None:
                raise await self._given_up()
            return await self._start(grant), False
        except Refused:
            await self._leave()
            raise

    async def _submitted(self, asked: Queries) -> Row:
        member = self._life["member"]
        told = await submit(
            self._door,
            asked,
            asker=self._asker,
            key=self._key,
            body=b.Submit(pool=SELF_POOL, member=member, **self._body.model_dump()),
            wait_ms=self._door.waits.decided_ms,
        )
        row = self._door.views.ask().operation(self.operation)
        if row is None or told.body.state == "received":
            raise Refused(Code.NO_OWNER, "Expected the reservation to be decided in time")
        return row

    async def _join(self) -> Position:
        joins = i.JoinRequested(**self._life, pool=SELF_POOL, places=1, tenant=self._tenant)
        decided = await say(self._door, Topic.MEMBERS, joins, None)
        refused = decided.find(e.JoinRefused)
        if refused is not None:
            raise refusal(refused.code, operation=self.operation.hex())
        if not decided.told:
            raise Refused(Code.NO_OWNER, "Expected to be let in in time")
        await self._beat()
        return decided.told[-1].position

    async def _beat(self) -> None:
        await say(self._door, Topic.MEMBERS, i.HeartbeatReported(**self._life), _NOW)

    async def _granted(self, place: Position, wait_ms: int) -> e.GrantIssued | None:
        ends_ms = self._now_ms() + wait_ms
        while True:
            left_ms = max(0, ends_ms - self._now_ms())
            turn_ms = min(left_ms, BEAT_EVERY_MS)
            heard = await self._door.views.deliveries(self._life["member"], place, turn_ms)
            place = heard.next
            for _, event in heard.items:
                match event:
                    case e.GrantIssued(operation=self.operation):
                        return event
                    case e.OperationExpired():
                        raise refusal(Code.DEADLINE_PASSED, operation=self.operation.hex())
                    case e.OperationCancelled():
                        raise refusal(Code.START_REFUSED, operation=self.operation.hex())
                    case _:
                        pass
            if not left_ms:
                return None
            await self._beat()

    async def _given_up(self) -> Refused:
        binding = self._binding()
        await cancel(self._door, self._tenant, self.operation, "not granted in time")
        return binding

    async def _leave(self) -> None:
        await leave(self._door, self._life["member"], self._life["member_epoch"])

    def _binding(self) -> Refused:
        asked = self._door.views.ask()
        waits_at = f"{SELF_POOL}:{self._life['member']}"
        queues = (one for one in asked.queues(self._tenant) if one.pool == waits_at)
        deferral = next((one.row.deferral for one in queues), None)
        not_before_ms = None if deferral is None else deferral.not_before_ms
        again, after = retry_fields(not_before_ms, asked.time_ms)
        budget = BudgetProblem(
            domain=self._body.domain,
            level=None if deferral is None else deferral.level,
            dimension=None if deferral is None else deferral.dimension,
        )
        return Refused(
            Code.BUDGET_EXHAUSTED,
            "Expected room in every budget in time, but there was none; "
            "the reservation is given up, and another one needs another key",
            headers=after,
            operation=self.operation.hex(),
            budget=budget,
            **{**again, "keep_key": False},
        )

    async def _start(self, grant: e.GrantIssued) -> r.Reserved:
        fields = ("tenant", "operation", "incarnation", "attempt", "epoch")
        names: dict[str, Any] = {name: getattr(grant, name) for name in fields}
        waited_ms = self._now_ms() - self._came_ms
        starts = i.StartRequested(**names, **self._life)
        decided = await say(self._door, Topic.STARTS, starts, None)
        refused = decided.find(e.StartRefused)
        if refused is not None:
            raise refusal(refused.code, operation=self.operation.hex())
        row = self._door.views.ask().operation(self.operation)
        if row is None or decided.find(e.StartAccepted) is None:
            raise Refused(
                Code.NO_OWNER,
                "Expected the start to be decided in time; the call must not go out",
                operation=self.operation.hex(),
            )
        # The caller's clock began before ours, so its span ends before the owner's does.
        return _reserved(self.operation, row, waited_ms=waited_ms, decided=decided)


def _reserved(
    operation: OperationId, row: Row, *, waited_ms: int = 0, decided: Decided | None = None
) -> r.Reserved:
    claimed = None if decided is None else decided.find(e.LeaseClaimed)
    expires_ms = None if claimed is None else claimed.expires_ms
    return r.Reserved(
        operation=operation.hex(),
        state=row.phase,
        send_within_ms=waited_ms + row.send_within_ms,
        lease_expires_at=None if expires_ms is None else instant(expires_ms),
        renew_every_ms=BEAT_EVERY_MS,
        requests=row.requests,
        tokens=row.tokens,
    )


async def cancel(door: Door, tenant: TenantId, operation: OperationId, reason: str) -> None:
    """Nobody waits for another attempt of it."""
    word = i.CancellationRequested(tenant=tenant, operation=operation, reason=reason)
    await say(door, Topic.CANCELLATIONS, word, None)


async def leave(door: Door, member: MemberId, member_epoch: str) -> None:
    """Its one place is not needed any more."""
    word = i.LeaveAnnounced(member=member, member_epoch=MemberEpoch(member_epoch))
    await say(door, Topic.MEMBERS, word, _NOW)
