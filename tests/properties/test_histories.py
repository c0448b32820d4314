"""Laws of all histories: replay equals live, repeats decide nothing, budgets hold."""

from random import Random

import pytest

from schemas import events as e
from schemas import inputs as i
from streams.core import invariants
from streams.core.decider import decide
from streams.core.opening import open_state
from streams.core.outcomes import Source, Taken
from tests.support import core as c

TENANTS = ["a", "b", "ab", "ünïcode"]
MEMBERS = ["m1", "m2", "m3"]


class Walk:
    """A random history, drawn from a seed: everything that can be asked, in any order."""

    def __init__(self, seed: int, cell: c.Core | None = None) -> None:
        self.chance = Random(seed)
        self.cell = cell or c.Core()
        self.seen: list[i.OperationSubmitted] = []
        self.grants: list[e.GrantIssued] = []
        self.lives = dict.fromkeys(MEMBERS, 1)
        self.events: list[e.Event] = []
        self.starts: set[tuple[bytes, int, int]] = set()
        self.keep(
            self.cell.run(
                c.domain(
                    c.dimension("slots", 4),
                    c.dimension("requests", 9, window_ms=2_000),
                    c.dimension("tokens", 900, window_ms=3_000, amount="actual"),
                    c.dimension("tokens-end", 2_000, window_ms=1_000, instant="completion"),
                    c.dimension("tokens-day", 20_000, window_ms=9_000, kind="fixed", reset_ms=500),
                    policy=self.chance.choice(POLICIES),
                    send_within_ms=200,
                    claim_by_ms=700,
                ),
                c.domain(c.dimension("slots", 2), name="d2", hold_initial_ms=100),
                c.pool(places_max=9),
                c.pool("q", domains=("d2",)),
            )
        )
        budget = i.TenantBudget(domain="d", dimensions=(c.dimension("requests", 4),))
        self.keep(self.cell.run(c.tenant("b", weight=3, budgets=(budget,), waiting_count_max=5)))

    def keep(self, events: list[e.Event]) -> None:
        self.events += events
        for event in events:
            if isinstance(event, e.GrantIssued):
                self.grants.append(event)
            if isinstance(event, e.StartAccepted):
                named = (event.operation, event.incarnation, event.attempt)
                assert named not in self.starts, "a second start of one attempt was accepted"
                self.starts.add(named)

    def epoch(self, member: str) -> str:
        return f"{member}-{self.lives[member]}"

    def ask(self) -> i.Input:
        chance = self.chance
        roll = chance.random()
        if roll < 0.35 or not self.grants:
            return self.submission() if roll < 0.25 or chance.random() < 0.5 else self.membership()
        if roll < 0.45:
            return self.membership()
        grant = chance.choice(self.grants[-8:])
        if roll < 0.65:
            return c.start(grant)
        if roll < 0.70:
            return c.sent(grant, chance.choice([0, 5, 150, 10_000, -1]))
        if roll < 0.90:
            outcome = chance.choice(["success"] * 5 + ["terminal", "cancelled", "not_sent", "odd"])
            used = chance.choice([None, 0, grant.output_tokens_max, 5 * grant.output_tokens_max])
            return c.result(
                grant, outcome, output_tokens=used, send_delay_ms=chance.choice([None, 3])
            )
        if roll < 0.95 and self.seen:
            some = chance.choice(self.seen)
            return i.CancellationRequested(
                tenant=chance.choice([some.tenant, "a"]), operation=c.id_of(some), reason="no"
            )
        return self.configuration()

    def submission(self) -> i.OperationSubmitted:
        chance = self.chance
        if self.seen and chance.random() < 0.15:
            return chance.choice(self.seen)
        member = chance.choice(MEMBERS)
        asked = c.submitted(
            chance.choice(TENANTS),
            f"k{chance.randrange(200)}",
            domain=chance.choice(["d", "d", "d", "d2", "none"]),
            pool=chance.choice(["p", "p", "p", "q", "self"]),
            prompt_tokens=chance.choice([0, 10, 300, 950, -1]),
            output_tokens_max=chance.choice([0, 50, 50, 500, None]),
            start_within_ms=chance.choice([1, 500, 2_000, 60_000, None]),
            payload_bytes=chance.choice([0, 10, 1 << 40]),
            member=member if chance.random() < 0.2 else None,
        )
        self.seen.append(asked)
        return asked

    def membership(self) -> i.Input:
        member = self.chance.choice(MEMBERS)
        roll = self.chance.random()
        if roll < 0.3:
            if self.chance.random() < 0.3:
                self.lives[member] += 1
            pool = self.chance.choice(["p", "p", "q", "self"])
            return c.join(
                member,
                places=self.chance.choice([0, 1, 3]),
                member_epoch=self.epoch(member),
                pool=pool,
                tenant="a" if pool == "self" else None,
            )
        if roll < 0.95:
            return c.heartbeat(member, self.epoch(member))
        return i.LeaveAnnounced(member=member, member_epoch=self.epoch(member))

    def configuration(self) -> i.ConfigProposed:
        chance = self.chance
        return chance.choice(
            [
                c.tenant(chance.choice(TENANTS), weight=chance.choice([0, 1, 2, 1_000_000])),
                c.domain(
                    c.dimension("slots", chance.choice([0, 1, 4])),
                    c.dimension("tokens", chance.choice([0, 90, 900]), window_ms=3_000),
                    name=chance.choice(["d", "d3"]),
                    policy=chance.choice(POLICIES),
                    claim_by_ms=700,
                ),
            ]
        )

    def entry(self) -> None:
        chance = self.chance
        if chance.random() < 0.03:
            self.cell.take_over(step_ms=chance.choice([None, None, 5_000]))
        count = chance.choice([0, 1, 1, 2, 5])
        asked = [self.ask() for _ in range(count)]
        if asked and chance.random() < 0.1:
            asked.append(asked[0])
        after_ms = chance.choice([0, 1, 10, 100, 400, 3_000 if chance.random() < 0.1 else 0])
        self.keep(self.cell.run(*asked, after_ms=after_ms))


POLICIES = [
    "fifo",
    "strict_priority",
    "round_robin",
    "weighted_round_robin",
    "virtual_counter",
]


@pytest.mark.parametrize("seed", range(40))
def test_after_every_entry_the_invariants_hold(seed):
    walk = Walk(seed)
    for _ in range(150):
        walk.entry()
        assert list(invariants.broken(walk.cell.state)) == []


@pytest.mark.parametrize("seed", range(20))
def test_folding_the_entries_gives_the_live_rows_and_reopening_changes_no_decision(seed):
    walk, steady = Walk(seed), Walk(seed)
    steady.cell.take_over = lambda **over: type(steady.cell).take_over(
        steady.cell, **{**over, "reopen": False}
    )
    for _ in range(200):
        walk.entry()
        steady.entry()
    assert walk.events == steady.events
    assert walk.cell.rows.digest() == steady.cell.rows.digest()
    assert walk.cell.follower().digest() == walk.cell.rows.digest()


@pytest.mark.parametrize("seed", range(10))
def test_deciding_changes_nothing(seed):
    walk = Walk(seed)
    for _ in range(60):
        walk.entry()
        assert not any(walk.cell.state.rows._changed)
        for _ in range(5):
            asked = walk.ask()
            decide(walk.cell.state, Taken(Source(c.TOPIC_OF[type(asked)], 0, 0), asked))
        assert walk.cell.state.drain() == []


@pytest.mark.parametrize("seed", range(10))
def test_every_readable_submission_has_exactly_one_answer(seed):
    walk = Walk(seed)
    answers = (
        e.OperationAdmitted,
        e.OperationRejected,
        e.DuplicateObserved,
        e.SubmissionConflicted,
    )
    for _ in range(150):
        asked = [walk.submission() for _ in range(3)]
        events = walk.cell.run(*asked, after_ms=7)
        assert [event.operation for event in c.only(answers, events)] == [
            c.id_of(one) for one in asked
        ]
        walk.keep(events)
        walk.entry()


@pytest.mark.parametrize("seed", range(10))
def test_the_end_of_a_history_ends_all_work(seed):
    walk = Walk(seed)
    for _ in range(100):
        walk.entry()
    cell = walk.cell
    cell.run(*[c.result(grant) for grant in walk.grants])
    for _ in range(200):
        cell.run(after_ms=1_000)
    state = open_state(cell.rows)
    assert state.cell.waiting == 0
    assert state.attempts == {}
    assert all(window.used == 0 for window in state.config.windows.values())
