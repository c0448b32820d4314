"""Inputs of a cell in their shortest true form, with what a test does not care about filled in."""

from typing import Any

from schemas import inputs as i
from schemas.ids import (
    DomainId,
    MemberEpoch,
    MemberId,
    OperationId,
    PoolId,
    TenantId,
    UserId,
    operation_id,
)
from schemas.units import Millis, Tokens

POOL, DOMAIN, USER = PoolId("workers"), DomainId("llm"), UserId("u1")


def id_of(tenant: str, key: object) -> OperationId:
    return operation_id(pool=POOL, tenant=TenantId(tenant), user=USER, idempotency_key=str(key))


def submission(tenant: str, key: object, **more: Any) -> i.OperationSubmitted:
    fields: dict[str, Any] = {
        "tenant": TenantId(tenant),
        "user": USER,
        "idempotency_key": str(key),
        "pool": POOL,
        "domain": DOMAIN,
        "prompt_tokens": Tokens(100),
        "output_tokens_max": Tokens(10),
        "start_within_ms": Millis(60_000),
    }
    return i.OperationSubmitted(**(fields | more))


def _attempt(tenant: str, key: object, more: dict[str, Any]) -> dict[str, Any]:
    return {
        "tenant": TenantId(tenant),
        "operation": id_of(tenant, key),
        "incarnation": 1,
        "attempt": 1,
        "epoch": 1,
        "member": MemberId("m1"),
        "member_epoch": MemberEpoch("e1"),
    } | more


def start(tenant: str, key: object = 0, **more: Any) -> i.StartRequested:
    return i.StartRequested(**_attempt(tenant, key, more))


def result(tenant: str, key: object = 0, **more: Any) -> i.ResultReported:
    return i.ResultReported(**_attempt(tenant, key, {"outcome": "success"} | more))


def heartbeat(member: str, epoch: str = "e1") -> i.HeartbeatReported:
    return i.HeartbeatReported(member=MemberId(member), member_epoch=MemberEpoch(epoch))


def join(member: str, *, places: int = 1, epoch: str = "e1", **more: Any) -> i.JoinRequested:
    fields: dict[str, Any] = {"pool": POOL, "places": places} | more
    return i.JoinRequested(member=MemberId(member), member_epoch=MemberEpoch(epoch), **fields)
