"""Standing starts: a grant that starts at once, for whom, and how long a place stands (R185)."""

import pytest

from schemas import events as e
from schemas import inputs as i
from schemas.codes import Code
from schemas.topics import Topic, routes
from tests.support import cells as s
from tests.support import core as c

CLOCK_MS = 77
AT_ONCE = ["GrantIssued", "LeaseClaimed", "StartAccepted"]


def beat(clock_ms: int | None = CLOCK_MS, *held: e.GrantIssued) -> i.HeartbeatReported:
    return c.heartbeat("m", "e1", *held, sent_ms=clock_ms)


def standing(**domain: int) -> c.Core:
    """Pool p has standing starts, and its member m has offered its places."""
    cell = s.cell(**domain)
    cell.run(c.pool(standing=True))
    cell.run(beat())
    return cell


def safe(key: str = "1", **over: object) -> i.OperationSubmitted:
    return c.submitted("a", key, **{"effect": "read_only", **over})


def test_a_grant_to_a_place_that_stands_is_claimed_and_started_in_the_same_entry() -> None:
    cell = standing(send_within_ms=300, transit_ms=40)
    _, grant, claim, accepted = cell.run(safe(), after_ms=5)
    assert s.kinds([grant, claim, accepted]) == AT_ONCE
    assert c.named(grant) == c.named(claim) == c.named(accepted)
    assert grant.started_ms == cell.now_ms
    assert claim.expires_ms == cell.now_ms + 60_000
    assert (accepted.send_within_ms, accepted.latest_arrival_ms) == (300, cell.now_ms + 340)
    assert accepted.commits_entitlement
    assert s.phase(cell, grant) == "started"
    assert s.same_as_followed(cell)


@pytest.mark.parametrize(("effect", "stands"), [("read_only", 1), ("keyed", 1), ("unsafe", 0)])
def test_only_work_that_may_be_repeated_starts_at_once(effect: str, stands: int) -> None:
    events = standing().run(safe(effect=effect))
    assert len(c.only(e.StartAccepted, events)) == stands
    assert len(s.grants(events)) == 1


def test_an_unsafe_grant_of_such_a_pool_takes_the_ordinary_handshake() -> None:
    cell = standing()
    grant = s.started(cell, safe(effect="unsafe"))
    assert grant.started_ms is None


def test_a_member_that_tells_no_clock_is_asked_to_ask() -> None:
    cell = standing()
    cell.run(beat(None))
    assert s.granted(cell, safe()).started_ms is None


def test_every_heartbeat_says_anew_whether_places_stand() -> None:
    cell = standing()
    for key, clock_ms in enumerate((None, 5, None)):
        cell.run(beat(clock_ms))
        grant = s.granted(cell, safe(str(key)))
        assert (grant.started_ms is None) is (clock_ms is None)


def test_the_offer_is_told_to_the_member_with_its_own_clock_and_the_owners_time() -> None:
    cell = standing()
    offered = s.one(e.PlacesOffered, cell.run(beat(123), after_ms=9))
    assert (offered.member, offered.member_epoch, offered.sent_ms) == ("m", "e1", 123)
    assert (offered.time_ms, offered.authority_epoch) == (cell.now_ms, 1)
    assert (Topic.DELIVERIES, "m") in routes(offered)


def test_no_place_of_another_pool_is_offered() -> None:
    cell = s.cell()
    assert s.kinds(cell.run(beat())) == ["HeartbeatRecorded"]
    grant = s.started(cell, safe())
    assert s.kinds(cell.run(beat(CLOCK_MS, grant))) == ["HeartbeatRecorded", "LeasesRenewed"]


def test_an_offer_comes_between_the_sign_of_life_and_the_renewal() -> None:
    cell = standing()
    (grant,) = s.grants(cell.run(safe()))
    kinds = s.kinds(cell.run(beat(CLOCK_MS, grant)))
    assert kinds == ["HeartbeatRecorded", "PlacesOffered", "LeasesRenewed"]


def test_who_is_no_member_offers_nothing() -> None:
    cell = standing()
    (refused,) = cell.run(c.heartbeat("m", "e0", sent_ms=1))
    assert isinstance(refused, e.JoinRefused)


def test_no_place_stands_once_the_pool_is_configured_otherwise() -> None:
    cell = standing()
    cell.run(c.pool())
    assert s.granted(cell, safe()).started_ms is None


def test_a_successor_takes_no_place_for_offered_until_it_has_told_its_own_time() -> None:
    cell = standing()
    cell.take_over()
    asked = s.granted(cell, safe("1"))
    assert asked.started_ms is None
    offered = s.one(e.PlacesOffered, cell.run(beat()))
    assert offered.authority_epoch == 2
    at_once = s.one(e.GrantIssued, cell.run(safe("2")))
    assert at_once.started_ms == cell.now_ms


def test_an_offer_outlives_a_restart_from_rows_under_the_same_owner() -> None:
    cell = standing()
    assert s.same_as_followed(cell)
    assert cell.follower().digest() == cell.rows.digest()


def test_times_that_members_compare_do_not_step() -> None:
    cell = standing()
    cell.now_ms += 7_000
    cell.take_over(step_ms=7_000)
    offered = s.one(e.PlacesOffered, cell.run(beat()))
    (grant,) = s.grants(cell.run(safe(), after_ms=3))
    assert offered.time_ms == cell.now_ms - 3 - 7_000
    assert grant.started_ms == offered.time_ms + 3


def test_a_report_against_the_bound_moves_the_arrival_earlier() -> None:
    cell = standing(send_within_ms=300, transit_ms=40)
    (grant,) = s.grants(cell.run(safe()))
    started_ms = cell.now_ms
    observed = s.one(e.SendObserved, cell.run(c.sent(grant, 12), after_ms=20))
    assert observed.latest_arrival_ms == started_ms + 12 + 40


def test_what_a_member_gives_back_unsent_returns_all_and_waits_again() -> None:
    cell = standing()
    (grant,) = s.grants(cell.run(safe()))
    events = cell.run(beat(None), c.result(grant, "not_sent"))
    assert c.only(e.ReservationReleased, events)
    (again,) = s.grants(events)
    assert (again.epoch, again.started_ms) == (grant.epoch + 1, None)


def test_a_start_that_is_asked_for_once_more_is_refused() -> None:
    cell = standing()
    (grant,) = s.grants(cell.run(safe()))
    refused = s.one(e.StartRefused, cell.run(c.start(grant)))
    assert refused.code == Code.START_REFUSED


def test_silence_after_a_standing_start_leaves_it_unknown_and_it_is_tried_again() -> None:
    cell = standing()
    (grant,) = s.grants(cell.run(safe()))
    events = cell.run(after_ms=60_000)
    unknown = s.one(e.OutcomeMarkedUnknown, events)
    assert unknown.operation == grant.operation
    assert c.only(e.RetryScheduled, events)


def test_members_never_have_more_than_their_places() -> None:
    cell = s.cell(places=2)
    cell.run(c.pool(standing=True))
    cell.run(beat())
    events = cell.settle_down(*(safe(str(n)) for n in range(5)))
    assert len(c.only(e.StartAccepted, events)) == 2
    first = s.grants(events)[0]
    events = cell.run(c.result(first))
    assert s.kinds(events)[-3:] == AT_ONCE


def test_an_entry_grants_as_many_as_ever() -> None:
    cell = standing()
    cell.run(s.bounds(grants_per_entry_max=4))
    cell.run(*(safe(str(n)) for n in range(3)))
    events = cell.run(*(safe(str(n)) for n in range(3, 9)))
    assert len(s.grants(events)) == len(c.only(e.StartAccepted, events)) == 4
    assert len(s.grants(cell.run())) == 2


def test_an_open_pool_has_no_standing_starts() -> None:
    refused = s.one(e.ConfigRefused, s.cell().run(c.pool(standing=True, unclaimed_max=3)))
    assert "open pool" in refused.detail
