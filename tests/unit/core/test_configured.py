"""When a change of configuration is taken, and from when on it holds."""

import pytest

from schemas import events as e
from schemas.codes import Code
from schemas.inputs import PoolConfig, TenantBudget, TenantConfig
from tests.support import cells as s
from tests.support import core as c


@pytest.mark.parametrize(
    ("version", "good"), [(None, True), (0, False), (1, False), (2, True), (3, False)]
)
def test_a_proposal_made_from_another_version_is_refused(version, good):
    cell = s.cell()
    cell.run(c.pool("x"))
    cell.run(c.pool("x"))
    (event,) = cell.run(c.config("pool", "x", PoolConfig(), version=version))
    if good:
        assert event.version == 3
    else:
        assert (event.code, event.version) == (Code.VERSION_SUPERSEDED, 2)


def test_every_scope_and_name_has_versions_of_its_own():
    cell = s.cell()
    events = cell.run(c.pool("x"), c.pool("y"), c.tenant("x"), c.pool("x"))
    assert [event.version for event in events] == [1, 1, 1, 2]


# -- dimensions keep what they mean -------------------------------------------------------------


def test_a_dimension_keeps_its_kind_and_unit():
    cell = s.cell(c.dimension("tokens", 10), c.dimension("slots", 1))
    fixed = c.domain(c.dimension("tokens", 10, kind="fixed"), c.dimension("slots", 1))
    requests = c.domain(c.dimension("tokens", 10, unit="requests"), c.dimension("slots", 1))
    longer = c.domain(c.dimension("tokens", 99, window_ms=7), c.dimension("slots", 1))
    kinds = s.kinds(cell.run(fixed, requests, longer))
    assert kinds == ["ConfigRefused", "ConfigRefused", "ConfigActivated"]


def test_a_dimension_may_be_dropped_only_when_nothing_counts_in_it():
    cell = s.cell(c.dimension("slots", 9), c.dimension("tokens", 900, window_ms=1_000))
    s.started(cell, c.submitted("a", "1"))
    without = c.domain(c.dimension("slots", 9))
    refused = s.one(e.ConfigRefused, cell.run(without))
    assert "tokens" in refused.detail
    s.one(e.ConfigActivated, cell.run(without, after_ms=9_000))


def test_a_tenants_budget_may_be_dropped_only_when_nothing_counts_in_it():
    budget = TenantBudget(domain="d", dimensions=(c.dimension("requests", 9, window_ms=1_000),))
    cell = s.cell(tenants=[c.tenant("a", budgets=(budget,))])
    s.started(cell, c.submitted("a", "1"))
    s.one(e.ConfigRefused, cell.run(c.tenant("a", weight=2)))
    s.one(e.ConfigActivated, cell.run(c.tenant("a", weight=2), after_ms=9_000))
    assert s.granted(cell, c.submitted("a", "2")).weight == 2
    assert cell.follower().digest() == cell.rows.digest()


def test_a_refusal_reads_the_same_from_an_owner_that_opened_its_tables():
    def refused(*, reopen):
        cell = s.cell(c.dimension("slots", 9))
        for name in ("z", "b"):
            cell.run(c.domain(c.dimension("slots", 9), name=name))
        budgets = [TenantBudget(domain=d, dimensions=(c.dimension("slots", 9),)) for d in "zb"]
        cell.run(c.tenant("a", budgets=tuple(budgets)))
        for name in ("z", "b"):
            cell.run(c.submitted("a", name, domain=name))
        cell.take_over(reopen=reopen)
        return s.one(e.ConfigRefused, cell.run(c.tenant("a")))

    assert refused(reopen=True) == refused(reopen=False)


# -- when it takes hold -------------------------------------------------------------------------


def test_a_change_holds_from_its_position_on_inside_an_entry():
    cell = s.cell(tenants=[c.tenant("a", waiting_count_max=0)])
    events = cell.run(
        c.submitted("a", "1"), c.tenant("a", waiting_count_max=1), c.submitted("a", "2")
    )
    assert s.kinds(events)[:3] == ["OperationRejected", "ConfigActivated", "OperationAdmitted"]


def test_a_higher_limit_lets_waiting_work_go_in_the_same_entry():
    cell = s.cell(c.dimension("slots", 1))
    cell.run(c.submitted("a", "1"), c.submitted("a", "2"))
    assert len(s.grants(cell.run(c.domain(c.dimension("slots", 2))))) == 1


def test_a_policy_takes_hold_at_once_and_also_after_a_takeover():
    def order(*, reopen):
        cell = s.cell(c.dimension("slots", 1), policy="round_robin")
        first = s.started(cell, c.submitted("a", "0"))
        asked = [c.submitted(t, f"{t}{n}") for t in "ab" for n in range(3)]
        cell.run(*asked)
        cell.run(c.domain(c.dimension("slots", 1), policy="fifo"))
        cell.take_over(reopen=reopen)
        found = ""
        while first:
            events = cell.run(c.result(first), after_ms=1_000)
            first = next(iter(s.grants(events)), None)
            if first:
                found += first.tenant
                cell.run(c.start(first))
        return found

    assert order(reopen=True) == order(reopen=False) == "aaabbb"


@pytest.mark.parametrize("reopen", [True, False])
def test_the_cells_default_weight_and_rank_hold_for_who_waits_already(reopen):
    cell = s.cell(
        c.dimension("slots", 1), policy="strict_priority", tenants=[c.tenant("b", rank=5)]
    )
    first = s.started(cell, c.submitted("a", "0"))
    cell.run(c.submitted("a", "1"), c.submitted("b", "1"))
    cell.run(s.bounds(tenant_defaults=TenantConfig(weight=7, rank=9)))
    cell.take_over(reopen=reopen)
    first = s.granted(cell, c.result(first))
    assert first.tenant == "b"
    cell.run(c.start(first))
    assert s.granted(cell, c.result(first)).weight == 7
    assert cell.follower().digest() == cell.rows.digest()


def test_a_pool_that_no_longer_runs_a_domain_gets_none_of_its_waiting_work():
    cell = s.cell()
    cell.run(c.domain(c.dimension("slots", 9), name="d2"))
    first = s.granted(cell, c.submitted("a", "1"))
    cell.run(c.domain(c.dimension("slots", 0)), c.submitted("a", "2"))
    cell.run(c.pool(domains=("d2",)))
    assert s.grants(cell.run(c.domain(c.dimension("slots", 9)))) == []
    assert s.granted(cell, c.pool(domains=("d2", "d"))).attempt == first.attempt


def test_genesis_names_the_cell_and_its_topics_and_every_owner_knows_them():
    cell = c.Core()
    cell.run(c.domain(c.dimension("slots", 1)))
    cell.take_over()
    assert (cell.state.cell.cell, cell.state.topic_ids) == ("cell", {"journal": "x"})
