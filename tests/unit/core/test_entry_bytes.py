"""An entry fits a record of the journal, whatever one take hands over and whatever is due."""

from collections.abc import Sequence

from msgspec.structs import replace

from schemas import events as e
from schemas import inputs as i
from schemas.codec import encode
from schemas.entry import Entry, EntryEvent, InputRun
from schemas.ids import OwnerId, StateHash
from schemas.topics import ENTRY_BYTES_MAX, INPUT_BYTES_MAX, PARTITIONS, Topic
from streams.core.decider import decide
from streams.core.limits import (
    DETAIL_CHARS_MAX,
    GRANTS_PER_ENTRY_MAX,
    NAME_BYTES_MAX,
    PLACES_MAX,
    REFERENCE_BYTES_MAX,
    SUBMISSIONS_PER_ENTRY_MAX,
    TIMERS_PER_ENTRY_MAX,
)
from streams.core.outcomes import Source, Taken, Unreadable
from streams.shell.kafka.config import HURRIED_PER_TAKE_MAX, REST_PER_TAKE_MAX, TAKE_BYTES_MAX
from streams.shell.kafka.inputs import input_topic, read_input
from tests.support import cells as s
from tests.support import core as c

LARGEST = {
    "submissions_per_entry_max": SUBMISSIONS_PER_ENTRY_MAX,
    "grants_per_entry_max": GRANTS_PER_ENTRY_MAX,
    "timers_per_entry_max": TIMERS_PER_ENTRY_MAX,
    "reference_bytes_max": REFERENCE_BYTES_MAX,
}
TTL_MS = 100_000
TEXT = "r" * REFERENCE_BYTES_MAX
TAKEN_MAX = TAKE_BYTES_MAX + INPUT_BYTES_MAX
"""A take ends with the record that reaches its bound."""


def long(name: str) -> str:
    return name.ljust(NAME_BYTES_MAX, "-")


D, E, P, IDLE, T, LOST, WORKS = (long(n) for n in ("d", "e", "p", "idle", "t", "lost", "works"))


def entry_bytes(core: c.Core) -> int:
    """The size of the last entry as its owner would append it."""
    made, decided = core.entries[-1]
    return len(
        encode(
            Entry(
                generation=1,
                previous=0,
                height=made.height,
                epoch=made.epoch,
                owner=OwnerId(bytes(16)),
                takeover=False,
                time_ms=made.time_ms,
                clock_shift_ms=0,
                published=0,
                core_version=1,
                state_hash=StateHash(bytes(32)),
                inputs=tuple(
                    InputRun(topic=n % 6, partition=n, first=0, next=2**40)
                    for n in range(6 * PARTITIONS)
                ),
                events=tuple(
                    EntryEvent(cause=one.cause, body=encode(one.event)) for one in decided
                ),
            )
        )
    )


def total(inputs: Sequence[i.Input]) -> int:
    return sum(len(encode(one)) for one in inputs)


def asked(number: int, **over: object) -> i.OperationSubmitted:
    fields = {"pool": P, "domain": D, "user": long("u"), "payload_ref": TEXT, **over}
    return c.submitted(T, long(f"{number}-"), content_sha256=TEXT, **fields)


def joined(core: c.Core, member: str) -> None:
    life = long("life")
    core.run(
        c.join(member, member_epoch=life, pool=P, places=PLACES_MAX), c.heartbeat(member, life)
    )


def busy() -> tuple[c.Core, list[e.GrantIssued]]:
    """A cell in which as much as possible is about to happen; the grants that were started."""
    core = c.Core()
    slots = c.dimension("slots", 10_000)
    patient = {"claim_by_ms": 100 * TTL_MS, "hold_initial_ms": 100 * TTL_MS}
    core.run(
        s.bounds(member_ttl_ms=TTL_MS, early_cancel_ms=100 * TTL_MS, **LARGEST),
        c.domain(slots, name=D, **patient),
        c.domain(c.dimension("slots", 0), name=E, **patient),
        c.pool(P, domains=(D, E), places_max=PLACES_MAX, lease_ms=100 * TTL_MS),
        c.pool(IDLE, domains=(D,)),
    )
    joined(core, LOST)
    for half in (0, PLACES_MAX // 2):
        core.settle_down(*(asked(half + n) for n in range(PLACES_MAX // 2)))
    joined(core, WORKS)
    events = core.settle_down(*(asked(10_000 + n) for n in range(HURRIED_PER_TAKE_MAX)))
    started = s.grants(events)
    core.run(*(c.start(grant) for grant in started))
    core.run(*(asked(20_000 + n, domain=E) for n in range(GRANTS_PER_ENTRY_MAX)))
    core.run(*(asked(30_000 + n, pool=IDLE) for n in range(REST_PER_TAKE_MAX)))
    core.run(*(s.cancel(asked(40_000 + n), reason=TEXT) for n in range(SUBMISSIONS_PER_ENTRY_MAX)))
    due = asked(0, pool=IDLE, start_within_ms=2 * TTL_MS - 1)
    core.run(
        *(
            asked(50_000 + n, pool=IDLE, start_within_ms=due.start_within_ms)
            for n in range(TIMERS_PER_ENTRY_MAX - 1)
        )
    )
    core.run(c.heartbeat(WORKS, long("life")), after_ms=TTL_MS - 1)
    assert s.kinds(core.run(after_ms=1)) == ["MemberSuspected"]
    return core, started


def test_an_entry_in_which_everything_happens_at_once_fits_a_record() -> None:
    core, started = busy()
    told = {"result_ref": TEXT, "error": TEXT, "send_delay_ms": 0}
    urgent = [
        *(c.result(grant, **told) for grant in started),
        c.heartbeat(WORKS, long("life")),
        c.domain(c.dimension("slots", 10_000), name=E),
        *(s.cancel(asked(30_000 + n, pool=IDLE), reason=TEXT) for n in range(40)),
        c.pool(long("wide"), domains=(D,) * 320),
    ]
    submissions = [asked(40_000 + n) for n in range(SUBMISSIONS_PER_ENTRY_MAX)]
    assert total(urgent) <= TAKEN_MAX
    assert total(submissions) <= TAKEN_MAX
    events = core.run(*urgent, *submissions, after_ms=TTL_MS)
    kinds = s.kinds(events)
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "SendObserved": HURRIED_PER_TAKE_MAX,
        "ResultRecorded": HURRIED_PER_TAKE_MAX,
        "ReservationSettled": HURRIED_PER_TAKE_MAX,
        "HeartbeatRecorded": 1,
        "ConfigActivated": 2,
        "OperationAdmitted": SUBMISSIONS_PER_ENTRY_MAX,
        "OperationCancelled": SUBMISSIONS_PER_ENTRY_MAX + 40,
        "OperationExpired": TIMERS_PER_ENTRY_MAX - 1,
        "GrantRevoked": PLACES_MAX,
        "ReservationReleased": PLACES_MAX,
        "MemberLost": 1,
        "MemberSlotReturned": 1,
        "GrantIssued": GRANTS_PER_ENTRY_MAX,
    }
    assert entry_bytes(core) <= ENTRY_BYTES_MAX


def test_refusals_that_repeat_their_input_leave_room_for_what_is_due() -> None:
    core, (grant, *_) = busy()
    name = "x" * (INPUT_BYTES_MAX - 500)
    fits = TAKEN_MAX // INPUT_BYTES_MAX
    urgent = [c.start(grant, member=name), c.result(grant, member=name), c.heartbeat(name)] * fits
    submissions = [c.submitted(name, str(n)) for n in range(fits)]
    alive = c.heartbeat(WORKS, long("life"))
    events = core.run(alive, *urgent[:fits], *submissions, after_ms=TTL_MS)
    assert {"StartRefused", "OperationRejected", "MemberLost"} <= set(s.kinds(events))
    assert entry_bytes(core) <= ENTRY_BYTES_MAX


def test_renewals_of_a_member_with_all_places_leave_room_for_what_is_due() -> None:
    core, _ = busy()
    foreign = [i.LeaseName(operation=bytes([n + 1]) * 16, epoch=1) for n in range(200)]
    held = s.grants(core.settle_down(*(asked(60_000 + n) for n in range(PLACES_MAX // 2))))
    held += s.grants(core.settle_down(*(asked(70_000 + n) for n in range(PLACES_MAX // 2))))
    core.run(*(c.start(grant) for grant in held))
    renewals = []
    for grant in held[:HURRIED_PER_TAKE_MAX]:  # each names another one, and leaves all others out
        alive = c.heartbeat(WORKS, long("life"), grant)
        renewals.append(replace(alive, leases=(*alive.leases, *foreign)))
    submissions = [asked(40_000 + n) for n in range(SUBMISSIONS_PER_ENTRY_MAX)]
    assert total(renewals) <= TAKEN_MAX
    events = core.run(*renewals, *submissions, after_ms=TTL_MS)
    kinds = s.kinds(events)
    assert kinds.count("LeasesRenewed") == HURRIED_PER_TAKE_MAX
    assert {"RenewRefused", "MemberLost", "OperationExpired"} <= set(kinds)
    assert entry_bytes(core) <= ENTRY_BYTES_MAX


def test_what_quotes_an_input_is_cut() -> None:
    core = s.cell()
    control = "\x00" * (INPUT_BYTES_MAX - 100)
    found = read_input(
        input_topic(Topic.MEMBERS, 1), 0, b"other", encode(c.heartbeat(member=control))
    )
    assert isinstance(found, Unreadable)
    assert len(found.detail) > INPUT_BYTES_MAX
    (quarantined,) = decide(core.state, Taken(Source(4, 0, 0), found))
    assert isinstance(quarantined, e.InputQuarantined)
    assert len(quarantined.detail) == DETAIL_CHARS_MAX
    refused = s.one(e.ConfigRefused, core.run(c.pool(domains=(control,))))
    assert len(refused.detail) == DETAIL_CHARS_MAX


def test_due_members_end_one_after_the_other_once_an_entry_is_full() -> None:
    core = c.Core()
    core.run(
        s.bounds(member_ttl_ms=TTL_MS, timers_per_entry_max=10),
        c.domain(c.dimension("slots", 100), claim_by_ms=100 * TTL_MS),
        c.pool(),
    )
    for member in ("m1", "m2"):
        core.run(c.join(member, places=20), c.heartbeat(member))
    core.settle_down(*(c.submitted("a", str(n)) for n in range(40)))
    core.run(after_ms=TTL_MS)
    first, second = core.run(after_ms=TTL_MS), core.run()
    for events in (first, second):
        assert s.kinds(events).count("GrantRevoked") == 20
        assert s.kinds(events).count("MemberLost") == 1
    assert not core.state.more
