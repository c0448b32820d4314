"""Who asks: a file of hashed keys, one JSON line each, read again as soon as it changes.

A key is `eh_<id>_<secret>`. The file has only the SHA-256 of the secret. That is enough, and a slow
hash would add nothing: slow hashes make *guessing* dear, and a secret of 256 random bits cannot be
guessed. Digests are compared in constant time; an unknown id takes the same path.

There is no door without a key: the API does not start without a keys file, and an empty one lets
nobody in. `evenhand keys create` and `evenhand dev` write lines with `add_key`.
"""

import hashlib
import hmac
import logging
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from schemas.bodies import Role
from schemas.body import Name
from schemas.ids import SELF_POOL, TenantId, UserId

SECRET_BYTES = 32
ID_BYTES = 6
_NOBODY = hashlib.sha256(b"").hexdigest()

_log = logging.getLogger(__name__)


class KeysMissing(Exception):
    """There is no keys file; the API does not start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who asks; tenant and user of everything that is written come from here (R1)."""

    key_id: str
    role: Role
    tenant: TenantId | None
    user: UserId | None
    pools: frozenset[str] | None = None
    """Of a worker: the pools that it may work for; None for all."""

    @property
    def author(self) -> str:
        """Whose act it is, in the record of manual acts."""
        return self.user or self.key_id

    @property
    def sees_all(self) -> bool:
        """Operators and auditors see every tenant; everybody else only their own."""
        return self.role in (Role.OPERATOR, Role.AUDITOR)

    def works_for(self, pool: str) -> bool:
        """Whether its processes may be members of this pool: a tenant's only of pool `self`."""
        if (pool == SELF_POOL) is not (self.role is Role.TENANT):
            return False
        return self.pools is None or pool in self.pools

    def sees(self, tenant: str | None) -> bool:
        """Whether something of this tenant exists for the caller."""
        return self.sees_all or (tenant is not None and tenant == self.tenant)


class KeyLine(BaseModel):
    """One line of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Name
    sha256: str
    role: Role
    tenant: Name | None = None
    user: Name | None = None
    pools: tuple[Name, ...] | None = None

    @model_validator(mode="after")
    def _tenant_named(self) -> Self:
        if self.role is Role.TENANT and (self.tenant is None or self.user is None):
            raise ValueError("Expected tenant and user for role tenant, but one is missing")
        if self.pools is not None and self.role is not Role.WORKER:
            raise ValueError(f"Expected pools only for role worker, but the role is {self.role}")
        return self

    @property
    def principal(self) -> Principal:
        """Whom the key stands for; a tenant only if it is a tenant's."""
        tenant = self.tenant if self.role is Role.TENANT else None
        return Principal(
            key_id=self.id,
            role=self.role,
            tenant=None if tenant is None else TenantId(tenant),
            user=None if self.user is None else UserId(self.user),
            pools=None if self.pools is None else frozenset(self.pools),
        )


def create_key(
    *,
    role: Role,
    tenant: str | None = None,
    user: str | None = None,
    pools: Sequence[str] = (),
) -> tuple[str, str]:
    """A new key and its line: the key is shown once, the line goes into the file.

    Args:
        role: what the key may do.
        tenant: whose key it is, for role tenant.
        user: person or service in the tenant.
        pools: those that a worker may work for; none means all.

    Raises:
        ValueError: role tenant without a tenant or a user, or pools for another role than worker.
    """
    key_id, secret = secrets.token_hex(ID_BYTES), secrets.token_urlsafe(SECRET_BYTES)
    line = KeyLine(
        id=key_id,
        sha256=_sha256(secret),
        role=role,
        tenant=tenant,
        user=user,
        pools=tuple(pools) or None,
    )
    return f"eh_{key_id}_{secret}", line.model_dump_json(exclude_none=True)


def add_key(
    path: Path,
    *,
    role: Role,
    tenant: str | None = None,
    user: str | None = None,
    pools: Sequence[str] = (),
) -> str:
    """Append a new key's line to the file, which only its owner may read; returns the key.

    Args and errors are those of `create_key`.
    """
    key, line = create_key(role=role, tenant=tenant, user=user, pools=pools)
    path.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a") as file:
        file.write(line + "\n")
    return key


def _sha256(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


class Keys:
    """The keys of one file; a line that is removed lets nobody in from the next request on."""

    def __init__(self, path: Path) -> None:
        """Read the file.

        Raises:
            KeysMissing: there is none.
            ValueError: a line is not as it must be; the message names it.
        """
        self._path = path
        if not path.is_file():
            raise KeysMissing(
                f"Expected a keys file at {path}, but there is none: "
                "make one with `evenhand keys create`, or set EVENHAND_KEYS_FILE"
            )
        self._stamp = self._stat()
        self._lines = _parse(path)

    def _stat(self) -> tuple[int, int, int] | None:
        try:
            stat = self._path.stat()
        except OSError:
            return None
        return stat.st_ino, stat.st_size, stat.st_mtime_ns

    def _current(self) -> dict[str, KeyLine]:
        stamp = self._stat()
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._lines = {} if stamp is None else _parse(self._path)
            except (OSError, ValueError) as error:
                _log.error("no key is valid until the keys file is: %s", error)
                self._lines = {}
        return self._lines

    def principal(self, key: str) -> Principal | None:
        """Whom the key stands for now; None if it is no valid key."""
        prefix, _, rest = key.partition("_")
        key_id, _, secret = rest.partition("_")
        line = self._current().get(key_id) if prefix == "eh" else None
        expected = _NOBODY if line is None else line.sha256
        matches = hmac.compare_digest(_sha256(secret), expected)
        return line.principal if matches and line is not None else None


def _parse(path: Path) -> dict[str, KeyLine]:
    lines = {}
    for number, text in enumerate(path.read_text().splitlines(), 1):
        if text.strip():
            try:
                line = KeyLine.model_validate_json(text)
            except ValidationError as error:
                raise ValueError(f"{path}, line {number}: {error}") from error
            lines[line.id] = line
    return lines
