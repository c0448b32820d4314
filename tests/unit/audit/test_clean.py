"""Histories in which everything is as it must be: the audit has nothing to say."""

from schemas import codec
from schemas.journal import CAUSE_TIME
from schemas.topics import Topic
from tests.support.budget import REQUESTS
from tests.support.history import History
from tests.support.logs import PARTITIONS, partition_of
from tests.support.words import e, i


def test_a_lifecycle_is_clean_and_counted() -> None:
    history = History()
    history.run(history.submit("a"))
    findings = history.audit(strict=True)
    assert findings.findings == ()
    assert findings.clean
    assert findings.first is None
    assert findings.submissions["admitted"] == 1
    assert findings.operations == {"succeeded": 1}
    assert findings.reservations == {"settled": 1, "open": 0}
    assert findings.pending == {"inputs": 0, "copies": 0}
    assert findings.as_json()["clean"] is True


def test_each_kind_of_answer_is_counted() -> None:
    history = History()
    named = {"tenant": "t", "operation": history.submit("a")}
    history.append([history.submission("a")], [e.DuplicateObserved(**named, state="waiting")])
    other = history.submission("a", prompt_tokens=11)
    history.append([other], [e.SubmissionConflicted(**named)])
    refused = history.submission("b")
    history.append([refused], [history.rejection(refused)])
    history.quarantine(history.logs.ask(b"no word"))
    findings = history.audit(strict=True)
    assert findings.findings == ()
    assert set(findings.submissions.values()) == {1}
    assert len(findings.submissions) == 5


def test_what_nobody_may_act_on_is_quarantined() -> None:
    history = History()
    word = codec.encode(history.submission("a"))
    foreign = codec.encode(i.LeaveAnnounced(member="m", member_epoch="1"))
    wrong = 1 - partition_of(b"t", PARTITIONS)
    for run in (
        history.logs.ask(b""),
        history.logs.ask(word[:-1]),
        history.logs.ask(codec.encode(history.submission("b", payload_ref="x" * 65_536))),
        history.logs.ask(word + b"\x00"),
        history.logs.ask(foreign),
        history.logs.ask(word, key=b"", partition=0),
        history.logs.ask(word, key=b"other"),
        history.logs.ask(word, partition=wrong),
    ):
        history.quarantine(run)
    assert history.audit(strict=True).findings == ()


def test_work_that_comes_back_stands_at_its_old_place() -> None:
    history = History()
    first, second, third = (history.submit(key) for key in "abc")
    history.grant(first)
    history.expire_grant(first)
    history.grant(first)
    history.start(first)
    history.not_sent(first)
    history.append([], [e.OperationParked(tenant="t", operation=first, reason="x")])
    history.run(second)
    history.append([], [e.OperationUnparked(tenant="t", operation=first)])
    history.run(first)
    history.run(third)
    findings = history.audit(strict=True)
    assert findings.findings == ()
    assert findings.reservations == {"expired": 1, "released": 1, "settled": 3, "open": 0}


def test_a_deadline_that_has_passed_blocks_nobody_behind_it() -> None:
    history = History()
    history.submit("a", start_within_ms=10)
    second = history.submit("b")
    history.wait(20)
    history.grant(second)
    assert history.audit().findings == ()


def test_budget_comes_back_at_its_exit() -> None:
    history = History()
    for key in "abc":
        history.run(history.submit(key))
    history.wait(1_000 + 105 + 2)
    history.run(history.submit("d"))
    assert history.audit(strict=True).findings == ()


def test_a_send_report_brings_budget_back_earlier() -> None:
    history = History()
    for key in "abc":
        operation = history.submit(key)
        history.grant(operation)
        history.start(operation)
        started_ms = history.now_ms
        history.sent(operation, delay_ms=20, latest_ms=started_ms + 25)
        history.result(operation)
    history.wait(1_000 + 25 + 2)
    history.run(history.submit("d"))
    assert history.audit(strict=True).findings == ()


def test_a_lowered_limit_revokes_nothing() -> None:
    history = History()
    first, second = history.submit("a"), history.submit("b")
    history.grant(first)
    history.grant(second)
    halved = i.DomainConfig(
        dimensions=(
            i.DimensionConfig(
                name="requests-1s", unit="requests", kind="sliding", limit=1, window_ms=1_000
            ),
        ),
        claim_by_ms=500,
        send_within_ms=100,
        transit_ms=5,
    )
    history.configure("domain", "d", domain=halved)
    history.start(first)
    history.start(second)
    assert history.audit(strict=True).findings == ()


def test_a_key_is_new_again_after_its_horizon() -> None:
    history = History()
    history.configure(
        "cell", "c", cell=i.CellConfig(tenant_defaults=i.TenantConfig(), guard_horizon_ms=10_000)
    )
    history.run(history.submit("a"))
    history.wait(10_000)
    word = history.submission("a")
    history.append([word], [history.admission(word, reuse=True)])
    findings = history.audit(strict=True)
    assert findings.findings == ()
    assert findings.operations == {"succeeded": 1, "waiting": 1}


def test_cancelled_work_is_over() -> None:
    history = History()
    waiting, granted = history.submit("a"), history.submit("b")
    history.append(
        [i.CancellationRequested(tenant="t", operation=waiting)],
        [e.OperationCancelled(tenant="t", operation=waiting, reason="")],
    )
    history.grant(granted)
    named = history.named(granted)
    history.append(
        [i.CancellationRequested(tenant="t", operation=granted)],
        [
            e.GrantRevoked(**named, reason="cancelled"),
            e.ReservationReleased(**named, reason="cancelled"),
            e.OperationCancelled(tenant="t", operation=granted, reason=""),
        ],
    )
    started = history.submit("c")
    history.grant(started)
    history.start(started)
    history.append(
        [i.CancellationRequested(tenant="t", operation=started)],
        [e.CancelSignalled(**history.named(started), cause="")],
    )
    history.result(started, "terminal")
    findings = history.audit(strict=True)
    assert findings.findings == ()
    assert findings.operations == {"cancelled": 3}


def test_strangers_and_losers_on_the_journal_are_noise() -> None:
    history = History()
    history.submit("a")
    assert history.head is not None
    true = codec.encode(history.head)
    for value in (true, b"no word", true[:-1], true[:9], codec.encode(history.submission("x"))):
        history.logs.append(Topic.JOURNAL, 0, None, value)
    # The next true entry extends the last accepted one, over the noise.
    history.submit("b")
    findings = history.audit(strict=True)
    assert findings.findings == ()
    assert findings.noise == 5


def test_repeated_copies_are_dropped_as_every_reader_drops_them() -> None:
    history = History()
    history.submit("a")
    assert history.head is not None
    history.logs.publish(history.head, history.offset)
    assert history.audit(strict=True).findings == ()


def test_what_is_not_out_yet_is_pending_unless_the_audit_is_strict() -> None:
    history = History()
    word = history.submission("a")
    offset = history.append([word], [history.admission(word)], publish=False)
    history.logs.ask(history.submission("b"))
    assert history.audit().findings == ()
    assert history.audit().pending == {"inputs": 1, "copies": 1}
    findings = history.audit(strict=True)
    assert {finding.check for finding in findings.findings} == {"publication", "answers"}
    assert findings.first is not None
    assert findings.first.position.offset == offset


def test_an_input_that_retention_removed_is_not_judged() -> None:
    history = History()
    history.run(history.submit("a"))
    place = (Topic.SUBMISSIONS, partition_of(b"t", PARTITIONS))
    history.logs.starts[place] = 1
    assert history.audit(strict=True).findings == ()


def test_a_fixed_window_counts_a_call_wherever_it_may_fall() -> None:
    fixed = i.DimensionConfig(
        name="r",
        unit="requests",
        kind="fixed",
        limit=1,
        window_ms=1_000,
        reset_ms=0,
        pace_percent=100,
    )
    domain = i.DomainConfig(dimensions=(fixed,), claim_by_ms=500, send_within_ms=100, transit_ms=5)
    history = History(domain=domain)
    history.now_ms = 1_001_500
    history.run(history.submit("a"))
    history.now_ms = 1_002_000
    history.run(history.submit("b"))
    assert history.audit(strict=True).findings == ()


def test_time_alone_ends_what_waited_too_long() -> None:
    history = History()
    operation = history.submit("a", start_within_ms=10)
    history.wait(10)
    expired = e.OperationExpired(tenant="t", operation=operation, reason="deadline")
    history.append([], [], events=[(CAUSE_TIME, expired)])
    assert history.audit(strict=True).findings == ()


def test_a_takeover_is_clean_and_gives_live_charges_their_term() -> None:
    domain = i.DomainConfig(
        dimensions=(REQUESTS,), claim_by_ms=500, send_within_ms=100, transit_ms=5
    )
    history = History(domain=domain)
    for key in "abc":
        history.run(history.submit(key))
    history.takeover()
    history.wait(1_000 + 105 + 2 + 121)
    history.run(history.submit("d"))
    assert history.audit(strict=True).findings == ()
