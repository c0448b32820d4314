"""A submission's one answer: every guard at its edge, in its order."""

import pytest
from msgspec.structs import replace

from schemas import events as e
from schemas.codes import CODES, Code
from schemas.inputs import TenantBudget
from streams.core.limits import NAME_BYTES_MAX, TOKENS_MAX
from tests.support import cells as s
from tests.support import core as c

ANSWERS = (e.OperationAdmitted, e.OperationRejected, e.DuplicateObserved, e.SubmissionConflicted)
DAY_MS = 86_400_000


def answer(cell, asked, after_ms=0):
    return s.one(ANSWERS, cell.run(asked, after_ms=after_ms))


def cell_of(**over):
    cell = s.cell(c.dimension("tokens", 10**10), c.dimension("slots", 0), **over)
    cell.run(c.pool("narrow", domains=("other",)), c.join("own", pool="self", tenant="a"))
    return cell


LONG = "x" * NAME_BYTES_MAX
GUARDS = [
    # field, value, refusal or None, does the refusal bind the key?
    ("idempotency_key", "", Code.IDEMPOTENCY_KEY_MISSING, False),
    ("idempotency_key", LONG, None, False),
    ("idempotency_key", LONG + "x", Code.INVALID_FIELD, False),
    ("idempotency_key", "a\nb", Code.INVALID_FIELD, False),
    ("idempotency_key", "ключ 🔑", None, False),
    ("tenant", "", Code.INVALID_FIELD, False),
    ("tenant", LONG + "x", Code.INVALID_FIELD, False),
    ("user", "", Code.INVALID_FIELD, False),
    ("user", "a\x00", Code.INVALID_FIELD, False),
    ("pool", "", Code.INVALID_FIELD, False),
    ("pool", "none", Code.UNKNOWN_POOL, True),
    ("pool", "narrow", Code.UNKNOWN_POOL, True),
    ("pool", "self", Code.UNKNOWN_POOL, False),
    ("domain", "", Code.INVALID_FIELD, False),
    ("domain", "none", Code.UNKNOWN_DOMAIN, True),
    ("member", "\x00", Code.INVALID_FIELD, False),
    ("member", "m", Code.INVALID_FIELD, True),
    ("lane", "bulk", Code.LANE_NOT_ENTITLED, False),
    ("lane", "urgent", Code.INVALID_FIELD, True),
    ("lane", "\x00" * 60_000, Code.INVALID_FIELD, True),
    ("effect", "harmless", Code.INVALID_FIELD, True),
    ("effect", "keyed", None, False),
    ("effect", "read_only", None, False),
    ("connection", "c1", Code.INVALID_FIELD, True),
    ("tier", "fast", Code.INVALID_FIELD, True),
    ("output_tokens_max", None, Code.OUTPUT_CEILING_MISSING, True),
    ("output_tokens_max", -1, Code.INVALID_FIELD, True),
    ("output_tokens_max", 0, None, False),
    ("output_tokens_max", TOKENS_MAX, None, False),
    ("output_tokens_max", TOKENS_MAX + 1, Code.INVALID_FIELD, True),
    ("prompt_tokens", -1, Code.INVALID_FIELD, True),
    ("prompt_tokens", 0, None, False),
    ("prompt_tokens", TOKENS_MAX, None, False),
    ("prompt_tokens", TOKENS_MAX + 1, Code.INVALID_FIELD, True),
    ("payload_bytes", -1, Code.INVALID_FIELD, True),
    ("payload_bytes", 0, None, False),
    ("payload_bytes", 16 * 2**20, None, False),
    ("payload_bytes", 16 * 2**20 + 1, Code.PAYLOAD_TOO_LARGE, True),
    ("payload_ref", "é" * 1_024, None, False),
    ("payload_ref", "é" * 1_024 + "x", Code.REFERENCE_TOO_LONG, True),
    ("content_sha256", "f" * 2_048, None, False),
    ("content_sha256", "f" * 2_049, Code.REFERENCE_TOO_LONG, True),
    ("start_within_ms", None, Code.DEADLINE_MISSING, False),
    ("start_within_ms", 0, Code.INVALID_FIELD, False),
    ("start_within_ms", 1, None, False),
    ("start_within_ms", 30 * DAY_MS, None, False),
    ("start_within_ms", 30 * DAY_MS + 1, Code.INVALID_FIELD, False),
]


@pytest.mark.parametrize(("field", "value", "code", "binds"), GUARDS)
def test_each_field_is_checked_at_its_edge_with_a_code_of_its_own(field, value, code, binds):
    cell = cell_of()
    found = answer(cell, replace(c.submitted("a", "1"), **{field: value}))
    if code is None:
        assert isinstance(found, e.OperationAdmitted)
    else:
        assert (found.code, found.binds_key, found.retry_at_ms) == (code, binds, None)
        assert found.detail.startswith("Expected")
        assert len(found.detail) < 400
        assert cell.state.cell.waiting == 0
        assert not (CODES[code].temporary and binds)


DEADLINES = [
    # absolute less now, code
    (0, Code.DEADLINE_PASSED),
    (-1, Code.DEADLINE_PASSED),
    (1, None),
    (30 * DAY_MS, None),
    (30 * DAY_MS + 1, Code.INVALID_FIELD),
    (2**62, Code.INVALID_FIELD),
]


@pytest.mark.parametrize(("ahead_ms", "code"), DEADLINES)
def test_an_absolute_deadline_lies_ahead_and_not_too_far(ahead_ms, code):
    cell = cell_of()
    asked = c.submitted("a", "1", start_within_ms=None, deadline_ms=cell.now_ms + ahead_ms)
    assert getattr(answer(cell, asked), "code", None) == code


@pytest.mark.parametrize(("within_ms", "ahead_ms", "least"), [(50, 70, 50), (70, 50, 50)])
def test_of_two_deadlines_the_earlier_one_holds(within_ms, ahead_ms, least):
    cell = cell_of()
    asked = c.submitted("a", "1", start_within_ms=within_ms, deadline_ms=cell.now_ms + ahead_ms)
    assert answer(cell, asked).deadline_ms == cell.now_ms + least


@pytest.mark.parametrize(("tenant", "member", "code"), [
    ("a", "own", None),
    ("b", "own", Code.UNKNOWN_POOL),
    ("a", "m", Code.UNKNOWN_POOL),
    ("a", "none", Code.UNKNOWN_POOL),
    ("a", None, Code.UNKNOWN_POOL),
])  # fmt: skip
def test_pool_self_is_for_the_tenants_own_member(tenant, member, code):
    asked = c.submitted(tenant, "1", pool="self", member=member)
    assert getattr(answer(cell_of(), asked), "code", None) == code


def test_who_joins_after_the_refusal_may_send_the_same_key_again():
    cell = s.cell()
    asked = c.submitted("a", "1", pool="self", member="late")
    assert not answer(cell, asked).binds_key
    cell.run(c.join("late", pool="self", tenant="a"))
    assert isinstance(answer(cell, asked), e.OperationAdmitted)


@pytest.mark.parametrize(("tokens", "fits"), [(99, True), (100, True), (101, False)])
@pytest.mark.parametrize("level", ["domain", "tenant"])
def test_what_is_larger_than_a_limit_never_fits_and_names_it(level, tokens, fits):
    tight = c.dimension("tokens", 100)
    budget = TenantBudget(domain="d", dimensions=(tight,))
    dimensions = (tight,) if level == "domain" else (c.dimension("slots", 1),)
    tenants = [] if level == "domain" else [c.tenant("a", budgets=(budget,))]
    cell = s.cell(*dimensions, tenants=tenants)
    found = answer(cell, c.submitted("a", "1", prompt_tokens=tokens, output_tokens_max=0))
    if fits:
        assert isinstance(found, e.OperationAdmitted)
    else:
        assert (found.code, found.level, found.dimension) == (Code.NEVER_FITS, level, "tokens")
        assert (found.binds_key, found.retry_at_ms) == (True, None)


def test_the_guards_stand_in_their_order():
    wrong = {
        "user": "",
        "domain": "none",
        "pool": "none",
        "lane": "bulk",
        "output_tokens_max": None,
        "payload_bytes": -1,
        "start_within_ms": None,
    }
    good = c.submitted("a", "1")
    cell = s.cell(c.dimension("tokens", 1), tenants=[c.tenant("a", waiting_count_max=0)])
    found = []
    while True:
        asked = replace(good, idempotency_key=f"k{len(found)}", **wrong)
        found.append(answer(cell, asked).code)
        if not wrong:
            break
        wrong.pop(next(iter(wrong)))
    assert found == [
        Code.INVALID_FIELD,
        Code.UNKNOWN_DOMAIN,
        Code.UNKNOWN_POOL,
        Code.LANE_NOT_ENTITLED,
        Code.OUTPUT_CEILING_MISSING,
        Code.INVALID_FIELD,
        Code.DEADLINE_MISSING,
        Code.NEVER_FITS,
    ]


def test_an_admission_gives_the_next_sequence_and_is_named_by_its_entry():
    cell = cell_of()
    found = c.only(e.OperationAdmitted, cell.run(c.submitted("b", "1"), c.submitted("a", "1")))
    assert [one.sequence for one in found] == [1, 2]
    assert {one.incarnation for one in found} == {cell.height}
