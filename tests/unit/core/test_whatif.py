"""The same inputs decided again: with the recorded policy the same, with another one otherwise."""

from schemas import events as e
from schemas import inputs as i
from streams.core.outcomes import Source, Taken
from streams.core.whatif import Recorded, _Line, _Script, replayed
from tests.support import core as c

SERVICE_MS = 50


class Play(c.Core):
    """Two tenants, one slot; a worker that starts in the next entry and takes its time."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.recorded = [Recorded(*self.entries[0][:1], (), self.entries[0][1])]
        self.said: list[tuple[int, i.Input]] = []

    def run(self, *asked, after_ms=0, timers=True):
        first = self.offset
        found = super().run(*asked, after_ms=after_ms, timers=timers)
        taken = [
            Taken(Source(c.TOPIC_OF[type(one)], 0, first + n), one) for n, one in enumerate(asked)
        ]
        header, decided = self.entries[-1]
        self.recorded.append(Recorded(header, taken, decided))
        for grant in c.only(e.GrantIssued, found):
            self.said.append((self.now_ms + 1, c.start(grant)))
            self.said.append((self.now_ms + 1 + SERVICE_MS, c.result(grant)))
        return found

    def work(self, steps: int) -> None:
        for _ in range(steps):
            due = [word for at, word in self.said if at <= self.now_ms + 5]
            self.said = [(at, word) for at, word in self.said if at > self.now_ms + 5]
            self.run(*due, c.heartbeat(), after_ms=5)


def _played(policy: str) -> Play:
    play = Play()
    play.run(c.domain(c.dimension("slots", 1), policy=policy), c.pool())
    play.run(c.join(places=3), c.heartbeat())
    play.run(*[c.submitted("a", f"a{n}") for n in range(6)])
    play.run(*[c.submitted("b", f"b{n}") for n in range(3)])
    play.work(steps=120)
    return play


def _order(decided) -> list[str]:
    return [one.event.tenant for one in decided if isinstance(one.event, e.GrantIssued)]


def _orders(play: Play, policy: str | None = None, service_ms: int = SERVICE_MS) -> str:
    run = replayed(play.recorded, service_ms=lambda _: service_ms, policy=policy)
    return "".join(tenant for one in run for tenant in _order(one.decided))


def test_with_the_recorded_policy_everything_is_decided_as_it_was() -> None:
    play = _played("virtual_counter")
    again = list(replayed(play.recorded, service_ms=lambda _: 0))
    assert [one.decided for one in again[: len(play.recorded)]] == [
        one.decided for one in play.recorded
    ]


def test_only_the_order_of_turns_changes_with_the_policy() -> None:
    play = _played("virtual_counter")
    recorded = "".join(tenant for one in play.recorded for tenant in _order(one.decided))
    assert recorded == _orders(play)
    assert recorded != "aaaaaabbb"
    assert _orders(play, "fifo") == "aaaaaabbb"


def test_work_that_the_record_never_granted_is_played_by_its_service_time() -> None:
    play = _played("virtual_counter")
    cut = Play()
    cut.recorded = play.recorded[:8]
    assert len(_orders(play)) == len(_orders(cut)) == 9


def test_a_takeover_is_folded_and_the_run_goes_on() -> None:
    play = _played("virtual_counter")
    before = len(play.recorded)
    play.take_over()
    play.recorded.append(Recorded(play.entries[-1][0], (), []))
    play.run(c.submitted("b", "late"))
    assert play.recorded[before].header.takeover
    assert _orders(play).endswith("b")
    assert len(_orders(play)) == 10


def test_what_a_worker_said_of_no_recorded_grant_is_an_input_like_any_other() -> None:
    play = _played("fifo")
    (grant, *_) = c.only(e.GrantIssued, [one.event for _, d in play.entries for one in d])
    play.run(c.result(grant, epoch=99))
    assert _orders(play) == "aaaaaabbb"


def test_a_run_whose_work_cannot_end_stops_at_its_bound(monkeypatch) -> None:
    monkeypatch.setattr("streams.core.whatif.TAIL_ENTRIES_MAX", 7)
    play = Play()
    play.run(c.domain(c.dimension("slots", 0)), c.pool())
    play.run(c.submitted("a", "never"))
    run = list(replayed(play.recorded, service_ms=lambda _: 0))
    assert len(run) == len(play.recorded) + 7


def test_a_worker_that_is_late_says_one_thing_after_the_other() -> None:
    lines = [_Line(1, 5, 0, "start", Source(0, 0, 0)), _Line(2, 6, 0, "result", Source(0, 0, 1))]
    script = _Script(lines, 0, 0)
    assert [line.said for line in script.due(9, 900)] == ["start"]
    assert [line.said for line in script.due(10, 910)] == ["result"]


def test_members_renew_what_they_hold_under_the_other_policy() -> None:
    play = Play()
    play.run(c.domain(c.dimension("slots", 1)), c.pool(lease_ms=1_500))
    play.run(c.join(places=3), c.heartbeat())
    (grant,) = c.only(e.GrantIssued, play.run(c.submitted("a", "1"), c.submitted("b", "1")))
    play.said.clear()
    play.run(c.start(grant), after_ms=1)
    for _ in range(6):
        play.run(c.renewal(grant), after_ms=300)
    play.run(c.result(grant))
    run = replayed(play.recorded, service_ms=lambda _: 2_500, policy="fifo")
    kinds = {type(each.event) for one in run for each in one.decided}
    assert e.LeasesRenewed in kinds
    assert e.OutcomeMarkedUnknown not in kinds
