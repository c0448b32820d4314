"""Names not to be mixed up, and how an operation's id follows from what was asked."""

import hashlib
from typing import NewType

TenantId = NewType("TenantId", str)
UserId = NewType("UserId", str)
PoolId = NewType("PoolId", str)
DomainId = NewType("DomainId", str)
DimensionName = NewType("DimensionName", str)
CellId = NewType("CellId", str)
MemberId = NewType("MemberId", str)
MemberEpoch = NewType("MemberEpoch", str)
OperationId = NewType("OperationId", bytes)
OwnerId = NewType("OwnerId", bytes)
PayloadDigest = NewType("PayloadDigest", bytes)
StateHash = NewType("StateHash", bytes)

SELF_POOL = PoolId("self")
"""The pool whose member is the submitter's own process."""

OPERATION_ID_BYTES = 16


def operation_id(
    *, pool: PoolId, tenant: TenantId, user: UserId, idempotency_key: str
) -> OperationId:
    """The id that any client can compute before it sends (requirements R176).

    The first 16 bytes of SHA-256 over the four parts in UTF-8, each after its length in four
    big-endian bytes, so that no two different scopes meet.

    >>> operation_id(pool="p", tenant="t", user="u", idempotency_key="k").hex()
    'a6fd434d9c575c66edb512983b1ff66c'
    """
    parts = [part.encode() for part in (pool, tenant, user, idempotency_key)]
    scope = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    return OperationId(hashlib.sha256(scope).digest()[:OPERATION_ID_BYTES])


def provider_key(operation: OperationId, incarnation: int) -> str:
    """The idempotency key for the provider: the same in every attempt of one incarnation (R72)."""
    return f"{operation.hex()}-{incarnation}"


_OF_KEY = "key_"


def member_of_key(key_id: str, name: str) -> MemberId:
    """The name of a process that is a member over HTTP: only the key in it speaks for it (R187).

    No key's id has an underscore, so no two keys meet in one name.

    >>> member_of_key("a1", "caller_7")
    'key_a1_caller_7'
    """
    return MemberId(f"{_OF_KEY}{key_id}_{name}")


def key_of_member(member: str) -> str | None:
    """The key that speaks for the member; None for one that is linked to the topics."""
    if not member.startswith(_OF_KEY):
        return None
    key_id, underscore, _ = member.removeprefix(_OF_KEY).partition("_")
    return key_id if underscore else None
