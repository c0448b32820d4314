"""Keys: what a file lets in, and how soon it stops doing so."""

import json
import stat
from pathlib import Path

import pytest
from pydantic import ValidationError

from api.auth import Keys, KeysMissing, add_key, create_key
from schemas.bodies import Role


def test_a_key_stands_for_its_tenant_user_and_role(tmp_path: Path) -> None:
    path = tmp_path / "keys.jsonl"
    key = add_key(path, role=Role.TENANT, tenant="acme", user="ada")
    principal = Keys(path).principal(key)
    assert principal is not None
    assert (principal.role, principal.tenant, principal.user) == (Role.TENANT, "acme", "ada")


def test_the_file_has_no_secret_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "keys.jsonl"
    key = add_key(path, role=Role.AUDITOR)
    assert key.split("_", 2)[2] not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("change", ["secret", "id", "prefix", "empty", "no_secret"])
def test_anything_but_the_key_lets_nobody_in(tmp_path: Path, change: str) -> None:
    path = tmp_path / "keys.jsonl"
    key = add_key(path, role=Role.AUDITOR)
    _, key_id, secret = key.split("_", 2)
    wrong = {
        "secret": f"eh_{key_id}_{secret[:-1]}{'A' if secret[-1] != 'A' else 'B'}",
        "id": f"eh_{'0' * len(key_id)}_{secret}",
        "prefix": f"xx_{key_id}_{secret}",
        "empty": "",
        "no_secret": f"eh_{key_id}",
    }[change]
    assert Keys(path).principal(wrong) is None


def test_a_removed_line_lets_nobody_in_from_the_next_request_on(tmp_path: Path) -> None:
    path = tmp_path / "keys.jsonl"
    gone, kept = (add_key(path, role=Role.AUDITOR) for _ in range(2))
    keys = Keys(path)
    assert keys.principal(gone) is not None
    path.write_text(path.read_text().splitlines()[1] + "\n")
    assert keys.principal(gone) is None
    assert keys.principal(kept) is not None


def test_a_broken_or_missing_file_lets_nobody_in(tmp_path: Path) -> None:
    path = tmp_path / "keys.jsonl"
    key = add_key(path, role=Role.AUDITOR)
    keys = Keys(path)
    path.write_text("{not a line")
    assert keys.principal(key) is None
    path.unlink()
    assert keys.principal(key) is None


def test_without_a_file_nothing_starts(tmp_path: Path) -> None:
    with pytest.raises(KeysMissing, match="evenhand keys create"):
        Keys(tmp_path / "keys.jsonl")


def test_a_broken_line_is_named_at_start(tmp_path: Path) -> None:
    path = tmp_path / "keys.jsonl"
    add_key(path, role=Role.AUDITOR)
    with path.open("a") as file:
        file.write(json.dumps({"id": "x", "sha256": "y", "role": "king"}) + "\n")
    with pytest.raises(ValueError, match="line 2"):
        Keys(path)


def test_role_tenant_needs_a_tenant_and_a_user() -> None:
    with pytest.raises(ValidationError, match="Expected tenant and user"):
        create_key(role=Role.TENANT, tenant="acme")


def test_pools_are_for_workers_and_without_any_a_worker_works_for_all(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="Expected pools only for role worker"):
        create_key(role=Role.OPERATOR, pools=["p"])
    path = tmp_path / "keys.jsonl"
    made = [add_key(path, role=Role.WORKER, pools=pools) for pools in ([], ["p", "r"])]
    every, some = (Keys(path).principal(key) for key in made)
    assert every is not None
    assert some is not None
    assert [every.works_for(pool) for pool in ("p", "q", "self")] == [True, True, False]
    assert [some.works_for(pool) for pool in ("p", "q", "self")] == [True, False, False]
