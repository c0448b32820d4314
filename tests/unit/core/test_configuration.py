"""What an operator may change, each bound at its edge, and when a change takes hold."""

import pytest
from msgspec.structs import replace

from schemas import events as e
from schemas.codes import Code
from schemas.inputs import CellConfig, DomainConfig, TenantBudget, TenantConfig
from streams.core.configuration import ENTRY_BOUNDS
from streams.core.limits import (
    COUNT_MAX,
    DIMENSIONS_MAX,
    LEASE_MS_MIN,
    LIMIT_MAX,
    NAME_BYTES_MAX,
    PLACES_MAX,
    WEIGHT_MAX,
    WINDOW_MS_MAX,
)
from streams.core.tables import Table
from tests.support import cells as s
from tests.support import core as c

CELL = CellConfig(tenant_defaults=TenantConfig())
DOMAIN = DomainConfig(dimensions=(c.dimension("slots", 1),))


def rest(cell):
    """All rows but what every entry writes."""
    return {key: row for key, row in cell.rows.values.items() if key[0] is not Table.CELL}


def answer(asked, cell=None):
    cell = cell or s.cell()
    before = rest(cell)
    (event,) = c.only((e.ConfigActivated, e.ConfigRefused), cell.run(asked))
    assert (rest(cell) == before) is isinstance(event, e.ConfigRefused)
    return event


def taken(asked, cell=None) -> bool:
    event = answer(asked, cell)
    if isinstance(event, e.ConfigActivated):
        return True
    assert event.code == Code.INVALID_FIELD
    assert event.detail.startswith("Expected")
    return False


# -- ranges, each at its edge -------------------------------------------------------------------

POSITIVE = (
    "start_within_ms_max",
    "guard_horizon_ms",
    "member_ttl_ms",
    "join_by_ms",
    "deferral_sample_ms",
    "early_cancel_ms",
    "silence_ms",
)
NOT_NEGATIVE = (
    "waiting_count_max",
    "waiting_bytes_max",
    "payload_bytes_max",
    "self_members_max",
    "clock_bound_ms",
)


@pytest.mark.parametrize(
    ("field", "least", "most"),
    [(f, 1, LIMIT_MAX) for f in POSITIVE]
    + [(f, 0, LIMIT_MAX) for f in NOT_NEGATIVE]
    + [("self_lease_ms", LEASE_MS_MIN, LIMIT_MAX)]
    + [(f, 1, most) for f, most in ENTRY_BOUNDS.items()],
)
def test_a_bound_of_the_cell_has_a_least_and_a_largest_value(field, least, most):
    for value, good in (
        (least - 1, False),
        (least, True),
        (most, True),
        (most + 1, False),
    ):
        assert taken(c.config("cell", "cell", replace(CELL, **{field: value}))) is good, value


@pytest.mark.parametrize(
    ("field", "least", "most"),
    [
        ("waiting_count_max", 0, LIMIT_MAX),
        ("waiting_bytes_max", 0, LIMIT_MAX),
        ("transit_ms", 0, LIMIT_MAX),
        ("claim_by_ms", 1, LIMIT_MAX),
        ("send_within_ms", 1, LIMIT_MAX),
        ("hold_initial_ms", 1, LIMIT_MAX),
        ("attempts_max", 1, LIMIT_MAX),
        ("retry_backoff_ms", 1, LIMIT_MAX),
        ("unknown_hold_ms", 1, LIMIT_MAX),
        ("throttles_max", 0, COUNT_MAX),
        ("retry_burst", 0, COUNT_MAX),
        ("cooldown_ms", 0, COUNT_MAX),
        ("retry_percent", 0, 100),
        ("call_ms_max", 1, DomainConfig(dimensions=()).unknown_hold_ms),
    ],
)
def test_a_number_of_a_domain_has_a_least_and_a_largest_value(field, least, most):
    for value, good in (
        (least - 1, False),
        (least, True),
        (most, True),
        (most + 1, False),
    ):
        assert taken(c.config("domain", "d2", replace(DOMAIN, **{field: value}))) is good, value


@pytest.mark.parametrize(
    ("field", "value", "good"),
    [
        ("weight", 0, False),
        ("weight", -1, False),
        ("weight", 1, True),
        ("weight", WEIGHT_MAX, True),
        ("weight", WEIGHT_MAX + 1, False),
        ("rank", -5, True),
        ("waiting_count_max", -1, False),
        ("waiting_count_max", 0, True),
        ("waiting_bytes_max", -1, False),
        ("waiting_bytes_max", LIMIT_MAX + 1, False),
        ("runtime_ms_max", 0, False),
        ("runtime_ms_max", 1, True),
        ("turns_max", -1, False),
        ("turns_max", 0, True),
        ("context_bytes_max", -1, False),
        ("context_bytes_max", 0, True),
        ("artifacts_max", -1, False),
        ("artifacts_max", 0, True),
    ],
)
def test_a_tenants_share_and_caps_have_a_range(field, value, good):
    assert taken(c.tenant("a", **{field: value})) is good
    defaults = TenantConfig(**{field: value})
    assert taken(c.config("cell", "cell", replace(CELL, tenant_defaults=defaults))) is good


@pytest.mark.parametrize(
    ("over", "good"),
    [
        ({"members_max": -1}, False),
        ({"members_max": 0}, True),
        ({"places_max": 0}, False),
        ({"places_max": 1}, True),
        ({"places_max": PLACES_MAX}, True),
        ({"places_max": PLACES_MAX + 1}, False),
        ({"lease_ms": LEASE_MS_MIN - 1}, False),
        ({"lease_ms": LEASE_MS_MIN}, True),
        ({"lease_ms": LIMIT_MAX + 1}, False),
        ({"unclaimed_max": 0}, False),
        ({"unclaimed_max": 1}, True),
        ({"unclaimed_max": PLACES_MAX + 1}, False),
        ({"domains": ("d",)}, True),
        ({"domains": ("d", "none")}, False),
        ({"name": "self"}, False),
        ({"name": "open"}, False),
        ({"name": "self:m"}, False),
    ],
)
def test_a_pool_has_a_name_of_its_own_a_size_and_known_domains(over, good):
    assert taken(c.pool(**over)) is good


SLIDING = {"name": "tokens", "unit": "tokens", "kind": "sliding", "limit": 1, "window_ms": 1}
FIXED = {**SLIDING, "kind": "fixed", "reset_ms": 0}
SLOTS = {"name": "slots", "unit": "slots", "kind": "concurrency", "limit": 1, "window_ms": None}
DIMENSIONS = [
    (SLIDING, {}, True),
    (SLIDING, {"name": ""}, False),
    (SLIDING, {"name": "x" * NAME_BYTES_MAX}, True),
    (SLIDING, {"name": "x" * (NAME_BYTES_MAX + 1)}, False),
    (SLIDING, {"name": "a\x00b"}, False),
    (SLIDING, {"unit": "euros"}, False),
    (SLIDING, {"kind": "leaky"}, False),
    (SLIDING, {"unit": "slots"}, False),
    (SLIDING, {"kind": "concurrency"}, False),
    (SLIDING, {"limit": -1}, False),
    (SLIDING, {"limit": 0}, True),
    (SLIDING, {"limit": LIMIT_MAX}, True),
    (SLIDING, {"limit": LIMIT_MAX + 1}, False),
    (SLIDING, {"window_ms": None}, False),
    (SLIDING, {"window_ms": 0}, False),
    (SLIDING, {"window_ms": WINDOW_MS_MAX}, True),
    (SLIDING, {"window_ms": WINDOW_MS_MAX + 1}, False),
    (SLIDING, {"reset_ms": 0}, False),
    (FIXED, {}, True),
    (FIXED, {"reset_ms": None}, True),
    (FIXED, {"reset_ms": -1}, False),
    (FIXED, {"reset_ms": LIMIT_MAX}, True),
    (FIXED, {"reset_ms": LIMIT_MAX + 1}, False),
    (FIXED, {"reset_uncertainty_ms": -1}, False),
    (FIXED, {"reset_uncertainty_ms": WINDOW_MS_MAX}, True),
    (FIXED, {"reset_uncertainty_ms": WINDOW_MS_MAX + 1}, False),
    (SLIDING, {"amount": "actual", "instant": "completion"}, True),
    (SLIDING, {"amount": "guessed"}, False),
    (SLIDING, {"instant": "departure"}, False),
    (SLOTS, {}, True),
    (SLOTS, {"window_ms": 1}, False),
]


@pytest.mark.parametrize(("base", "over", "good"), DIMENSIONS)
def test_a_dimension_is_checked_as_a_whole(base, over, good):
    one = c.dimension(**{**base, **over})
    assert taken(c.domain(one, name="d2")) is good
    budget = TenantBudget(domain="d", dimensions=(one,))
    assert taken(c.tenant("a", budgets=(budget,))) is good


@pytest.mark.parametrize(
    ("count", "good"), [(0, False), (1, True), (DIMENSIONS_MAX, True), (DIMENSIONS_MAX + 1, False)]
)
def test_a_level_has_one_to_sixteen_dimensions(count, good):
    assert (
        taken(c.domain(*[c.dimension(f"tokens-{n}", 1) for n in range(count)], name="d2")) is good
    )


def test_a_level_has_each_name_once():
    assert not taken(c.domain(c.dimension("slots", 1), c.dimension("slots", 2), name="d2"))


@pytest.mark.parametrize(
    "asked",
    [
        c.domain(c.dimension("slots", 1), policy="lottery", name="d2"),
        c.config("cell", "another", CELL),
        c.tenant("a", budgets=(TenantBudget(domain="none", dimensions=DOMAIN.dimensions),)),
        c.tenant("a", budgets=(TenantBudget(domain="d", dimensions=DOMAIN.dimensions),) * 2),
        c.config(
            "cell",
            "cell",
            replace(
                CELL,
                tenant_defaults=TenantConfig(
                    budgets=(TenantBudget(domain="d", dimensions=DOMAIN.dimensions),)
                ),
            ),
        ),
        replace(c.pool("x"), cell=CELL),
        replace(c.pool("x"), pool=None),
        replace(c.pool("x"), scope="tenant"),
        replace(c.pool("x"), reason="x" * 2_049),
    ],
)
def test_a_proposal_with_any_fault_is_refused_as_a_whole(asked):
    assert not taken(asked)


def test_a_reason_may_have_the_length_of_a_reference_and_not_one_byte_more():
    assert taken(replace(c.pool("x"), reason="é" * 1_024))
    assert not taken(replace(c.pool("x"), reason="é" * 1_024 + "x"))


@pytest.mark.parametrize("field", ["scope", "name", "author"])
@pytest.mark.parametrize("value", ["", "a\nb", "x" * (NAME_BYTES_MAX + 1)])
def test_a_proposal_whose_names_cannot_be_keys_is_quarantined(field, value):
    cell = s.cell()
    (event,) = cell.run(replace(c.pool("x"), **{field: value}))
    assert (type(event), event.code) == (e.InputQuarantined, Code.INVALID_FIELD)


def test_a_refusal_quotes_no_more_than_a_little_of_what_was_asked():
    event = answer(c.domain(c.dimension("slots", 1), policy="x" * 60_000, name="d2"))
    assert len(event.detail) < 300
