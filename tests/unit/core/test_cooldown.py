"""Refused by the provider: no attempt is counted, no token is charged, and the domain pauses."""

import pytest

from schemas import events as e
from schemas.codes import Code
from streams.core.limits import COOLDOWN_MS_MAX
from tests.support import cells as s
from tests.support import core as c

ONE, TWO = c.submitted("a", "1"), c.submitted("a", "2")
SLOTS = c.dimension("slots", 9)


def refused(cell, outcome="throttled", retry_after_ms=None, asked=ONE):
    """A call that the provider did not take; what follows its result."""
    grant = s.started(cell, asked)
    told = c.result(
        grant, outcome, retry_after_ms=retry_after_ms, prompt_tokens=None, output_tokens=None
    )
    return grant, cell.run(told)


def pause(cell, events):
    """How long the domain pauses; 0 for not at all, None for until somebody acts."""
    found = c.only(e.CooldownSet, events)
    return next((one.until_ms and one.until_ms - cell.now_ms for one in found), 0)


def test_a_throttled_call_spends_its_request_and_no_token_and_waits_at_its_old_place():
    tokens = c.dimension("tokens", 900, amount="actual", window_ms=10**7)
    cell = s.cell(c.dimension("requests", 9, window_ms=10**7), tokens, SLOTS)
    grant, events = refused(cell)
    assert s.kinds(events) == ["ResultRecorded", "ReservationSettled", "CooldownSet"]
    assert events[1].tokens_actual == 0
    assert [s.used(cell, name) for name in ("requests", "tokens", "slots")] == [1, 0, 0]
    assert s.phase(cell, grant) == "waiting"
    assert cell.state.operation(grant.operation).more.tries == 0
    assert s.same_as_followed(cell)


HINTS = [
    # outcome, hint, pause with a default of 60 s
    ("throttled", None, 60_000),
    ("throttled", -1, 60_000),
    ("throttled", 0, 0),
    ("throttled", 1, 1),
    ("throttled", 500, 500),
    ("throttled", 61_000, 61_000),
    ("throttled", 120_000, 120_000),
    ("throttled", 86_400_000, 86_400_000),
    ("throttled", 86_400_001, COOLDOWN_MS_MAX),
    ("quota_exhausted", 5_000, 5_000),
    ("quota_exhausted", None, None),
    ("reauthentication_required", None, None),
    ("reauthentication_required", 5_000, 5_000),
]


@pytest.mark.parametrize(("outcome", "hint_ms", "paused_ms"), HINTS)
def test_a_domain_pauses_as_long_as_the_provider_says(outcome, hint_ms, paused_ms):
    cell = s.cell(SLOTS)
    _, events = refused(cell, outcome, hint_ms)
    assert pause(cell, events) == paused_ms
    assert [one.cause for one in c.only(e.CooldownSet, events)] == [outcome] * (paused_ms != 0)


@pytest.mark.parametrize(("after_ms", "goes"), [(1_999, 0), (2_000, 2), (2_001, 2)])
def test_a_paused_domain_grants_nothing_until_its_pause_is_over(after_ms, goes):
    cell = s.cell(SLOTS)
    refused(cell, "throttled", 2_000)
    assert s.grants(cell.run(TWO)) == []
    assert cell.state.next_due_ms == cell.now_ms + 2_000
    assert len(s.grants(cell.run(after_ms=after_ms))) == goes
    assert s.same_as_followed(cell)


def test_other_domains_go_on():
    cell = s.cell(SLOTS)
    cell.run(c.domain(SLOTS, name="d2"))
    refused(cell)
    assert s.granted(cell, c.submitted("a", "2", domain="d2")).domain == "d2"


def test_what_was_granted_before_may_start_in_the_pause():
    cell = s.cell(SLOTS)
    granted = s.granted(cell, TWO)
    refused(cell)
    s.one(e.StartAccepted, cell.run(c.start(granted)))


def test_a_pause_only_ever_ends_later():
    cell = s.cell(SLOTS)
    first, second = s.started(cell, ONE), s.started(cell, TWO)
    cell.run(c.result(first, "throttled", retry_after_ms=60_000))
    until_ms = cell.now_ms + 60_000
    assert pause(cell, cell.run(c.result(second, "throttled", retry_after_ms=1_000))) == 0
    assert cell.state.config.domains["d"].row.cooldown_ms == until_ms


def test_a_late_success_does_not_end_a_pause():
    cell = s.cell(SLOTS)
    first, second = s.started(cell, ONE), s.started(cell, TWO)
    cell.run(c.result(first, "throttled"))
    assert s.grants(cell.run(c.result(second), after_ms=1_000)) == []


def test_what_only_a_person_can_mend_pauses_until_the_domain_is_configured_again():
    cell = s.cell(SLOTS)
    first, second = s.started(cell, ONE), s.started(cell, TWO)
    assert pause(cell, cell.run(c.result(first, "quota_exhausted"))) is None
    assert c.only(e.CooldownSet, cell.run(c.result(second, "throttled"))) == []
    assert s.grants(cell.run(after_ms=10**6)) == []
    cell.take_over()
    assert s.grants(cell.run()) == []
    back = s.grants(cell.run(c.domain(SLOTS)))
    assert {one.operation for one in back} == {first.operation, second.operation}


def test_a_pause_without_an_end_is_told_once():
    cell = s.cell(SLOTS)
    first, second = s.started(cell, ONE), s.started(cell, TWO)
    cell.run(c.result(first, "throttled", retry_after_ms=5_000))
    assert pause(cell, cell.run(c.result(second, "reauthentication_required"))) is None
    assert s.grants(cell.run(after_ms=5_000)) == []
    third = s.started(cell, c.domain(SLOTS), s.cancel(TWO))
    assert pause(cell, cell.run(c.result(third, "quota_exhausted"))) is None
    assert s.same_as_followed(cell)


def test_an_operator_ends_a_pause_early():
    cell = s.cell(SLOTS)
    refused(cell)
    assert len(s.grants(cell.run(c.domain(SLOTS), TWO))) == 2


@pytest.mark.parametrize("reopen", [False, True])
def test_a_takeover_forgets_no_pause(reopen):
    cell = s.cell(SLOTS)
    refused(cell, "throttled", 5_000)
    cell.take_over(reopen=reopen)
    assert s.grants(cell.run(after_ms=4_999)) == []
    assert len(s.grants(cell.run(after_ms=1))) == 1


def test_throttled_results_are_bounded_apart():
    cell = s.cell(SLOTS, throttles_max=2, attempts_max=1)
    grant = s.started(cell, ONE)
    for _ in range(2):
        grant = s.granted(cell, c.result(grant, "throttled", retry_after_ms=0))
        cell.run(c.start(grant))
    events = cell.run(c.result(grant, "throttled", retry_after_ms=0))
    assert s.one(e.OperationDeadLettered, events).reason == Code.THROTTLES_EXHAUSTED
    assert (s.phase(cell, grant), grant.attempt) == ("dead", 3)
    assert s.same_as_followed(cell)


def test_throttled_work_whose_deadline_has_come_expires():
    cell = s.cell(SLOTS)
    grant = s.started(cell, c.submitted("a", "1", start_within_ms=1_000))
    events = cell.run(c.result(grant, "throttled"), after_ms=1_000)
    assert s.one(e.OperationExpired, events).reason == "deadline"


def test_throttled_work_that_was_cancelled_is_over():
    cell = s.cell(SLOTS, throttles_max=0)
    grant = s.started(cell, ONE)
    cell.run(s.cancel(ONE))
    cell.run(c.result(grant, "throttled"))
    assert s.phase(cell, grant) == "cancelled"


def test_work_expires_in_a_pause_that_is_longer_than_its_deadline():
    cell = s.cell(SLOTS)
    refused(cell)
    cell.run(c.submitted("a", "2", start_within_ms=2_000))
    s.one(e.OperationExpired, cell.run(after_ms=2_000))
