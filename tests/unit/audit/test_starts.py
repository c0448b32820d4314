"""Defects in starts, settlements and configuration: each is named at its position."""

from tests.support.budget import DOMAIN
from tests.support.history import History
from tests.support.plants import Plant, Plants, granted, judge, started
from tests.support.words import e, i

plants = Plants()


# -- starts ----------------------------------------------------------------------------------------


@plants.breaks("starts")
def a_start_nobody_asked_for(history: History) -> int:
    return history.append([], history.starting(granted(history)))


@plants.breaks("starts")
def a_start_asked_for_by_another(history: History) -> int:
    operation = granted(history)
    named = {**history.named(operation), "member": "n"}
    return history.append([i.StartRequested(**named)], history.starting(operation))


@plants.breaks("starts")
def a_start_after_claim_by(history: History) -> int:
    operation = granted(history)
    history.wait(500)
    return history.start(operation)


@plants.breaks("starts")
def a_start_at_its_deadline(history: History) -> int:
    operation = history.submit("a", start_within_ms=100)
    history.grant(operation)
    history.wait(98)
    return history.start(operation)


@plants.breaks("starts")
def a_second_start_for_one_grant(history: History) -> int:
    return history.start(started(history))


@plants.breaks("starts")
def a_start_of_an_expired_grant(history: History) -> int:
    operation = granted(history)
    history.expire_grant(operation)
    return history.start(operation)


@plants.breaks("starts")
def a_start_without_a_lease(history: History) -> int:
    operation = granted(history)
    asked = i.StartRequested(**history.named(operation))
    return history.append([asked], history.starting(operation)[1:])


@plants.breaks("starts")
def a_latest_arrival_too_early(history: History) -> int:
    return history.start(granted(history), latest_arrival_ms=history.now_ms + 100)


@plants.breaks("starts")
def a_send_report_that_moves_an_arrival_later(history: History) -> int:
    operation = started(history)
    return history.sent(operation, delay_ms=1, latest_ms=history.now_ms + 106)


@plants.breaks("starts")
def a_send_report_believed_beyond_what_it_says(history: History) -> int:
    operation = started(history)
    return history.sent(operation, delay_ms=20, latest_ms=history.now_ms + 24)


@plants.breaks("starts")
def a_result_without_a_start(history: History) -> int:
    return history.result(granted(history))


@plants.breaks("starts")
def a_result_other_than_reported(history: History) -> int:
    operation = started(history)
    asked = i.ResultReported(**history.named(operation), outcome="terminal")
    return history.append(
        [asked], [history.recording(operation, "success"), history.settling(operation)]
    )


# -- settlements -----------------------------------------------------------------------------------


@plants.breaks("settlements")
def a_reservation_is_settled_twice(history: History) -> int:
    operation = started(history)
    history.result(operation)
    return history.append([], [history.settling(operation)])


@plants.breaks("settlements")
def a_known_result_settles_nothing(history: History) -> int:
    operation = started(history)
    asked = i.ResultReported(**history.named(operation), outcome="success")
    return history.append([asked], [history.recording(operation, "success")])


@plants.breaks("settlements")
def a_known_result_releases_its_reservation(history: History) -> int:
    operation = started(history)
    asked = i.ResultReported(**history.named(operation), outcome="success")
    released = e.ReservationReleased(**history.named(operation), reason="not_sent")
    return history.append([asked], [history.recording(operation, "success"), released])


@plants.breaks("settlements")
def a_running_reservation_is_released(history: History) -> int:
    operation = started(history)
    released = e.ReservationReleased(**history.named(operation), reason="not_sent")
    return history.append([], [released])


@plants.breaks("settlements")
def a_settlement_forgets_what_was_held(history: History) -> int:
    return history.result(started(history), tokens_reserved=1)


@plants.breaks("settlements")
def an_overdraft_is_clamped(history: History) -> int:
    return history.result(started(history), tokens_actual=40)


# -- config ----------------------------------------------------------------------------------------


@plants.breaks("config")
def a_version_is_left_out(history: History) -> int:
    history.versions["domain", "d"] += 1
    return history.configure("domain", "d", domain=DOMAIN)


@plants.cases()
def test_a_planted_defect_is_named_at_its_position(check: str, plant: Plant) -> None:
    judge(check, plant)
