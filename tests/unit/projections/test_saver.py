"""Who saves in a domain, and when it no longer does."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from projections.queries import Queries
from tests.support.folding import Fold
from tests.support.told import START_MS, Told, configured
from tests.support.words import e, i

TOLD = Told("large")
M1 = {"member": "m1", "member_epoch": "e1"}
NAMED = {"tenant": "acme", "operation": TOLD.id}


@pytest.fixture
def fold(tmp_path: Path) -> Iterator[Fold]:
    made = Fold(tmp_path)
    made.tell(e.MemberSlotGranted(**M1, pool="p", places=9, join_by_ms=START_MS))
    made.tell(e.MemberActivated(**M1))
    made.admit(TOLD)
    yield made
    made.store.close()


def saves() -> Any:
    return e.SavingStarted(**NAMED, domain="d", lane="interactive", skips=32, since_ms=1)


def saver_of(asked: Queries) -> bytes | None:
    saver = asked.budgets("d")[0].saver
    return None if saver is None else saver.saver.operation


def test_a_head_that_began_to_save_is_the_saver(fold: Fold) -> None:
    found = fold.tell(saves()).budgets("d")[0].saver
    assert found is not None
    assert (found.saver.operation, found.saver.skips) == (TOLD.id, 32)
    assert found.operation.tenant == "acme"


def of_the_tenant() -> Any:
    tenant = i.TenantConfig(weight=3)
    common = {"version": 2, "author": "test", "reason": "test"}
    return e.ConfigActivated(scope="tenant", name="acme", tenant=tenant, **common)


def of_the_domain() -> Any:
    return next(one for one in configured() if one.scope == "domain")


ENDS: dict[str, Callable[[], Sequence[Any]]] = {
    "grant": lambda: [TOLD.granted()],
    "cancellation": lambda: [e.OperationCancelled(**NAMED, reason="")],
    "expiry": lambda: [e.OperationExpired(**NAMED, reason="deadline")],
    "parking": lambda: [
        e.OperationParked(**NAMED, reason="never-fits"),
        e.OperationUnparked(**NAMED),
    ],
    "leave of the last member": lambda: [e.MemberDrainRequested(**M1, reason="left")],
    "loss of the last member": lambda: [e.MemberSuspected(**M1), e.MemberLost(**M1)],
    "configuration of the domain": lambda: [of_the_domain()],
    "configuration of the tenant": lambda: [of_the_tenant()],
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_it_saves_no_longer_after(fold: Fold, end: Callable[[], Sequence[Any]]) -> None:
    assert saver_of(fold.tell(saves())) == TOLD.id
    assert saver_of(fold.tell(*end())) is None


def test_an_operation_that_saved_waits_again_without_saving(fold: Fold) -> None:
    expired = e.GrantExpired(**TOLD.attempt)
    assert saver_of(fold.tell(saves(), TOLD.granted(), expired)) is None
    assert saver_of(fold.tell(saves())) == TOLD.id


def test_a_saver_of_an_open_pool_needs_no_member(fold: Fold) -> None:
    pool = i.PoolConfig(unclaimed_max=1)
    common = {"version": 2, "author": "test", "reason": "test"}
    fold.tell(e.ConfigActivated(scope="pool", name="p", pool=pool, **common), saves())
    assert saver_of(fold.tell(e.MemberDrainRequested(**M1, reason="left"))) == TOLD.id
