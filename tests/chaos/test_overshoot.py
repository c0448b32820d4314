"""No window of the provider's record ever holds too much, whatever fails and however late it is.

Calls go out as late as they may and take as long as they may to arrive; words come twice; owners
and workers are killed, stopped and cut off; the broker's clock steps. Nothing of Evenhand judges.
"""

import os
import time
from random import Random
from uuid import uuid4

import pytest
from msgspec.structs import replace

from schemas.ids import DimensionName
from schemas.inputs import DimensionConfig
from schemas.topics import Topic
from schemas.units import Millis
from streams.shell.kafka.admin import CellTopics, KafkaAdmin
from tests.chaos.cut_broker import CutBroker
from tests.chaos.storm import Storm
from tests.chaos.windows import Call, most, nearest_ms
from tests.chaos.world import World
from tests.support.kafka import Log

SEED = int(os.environ.get("SEED", "1"))
FAULTS = int(os.environ.get("FAULTS", "8"))
SEND_WITHIN_MS, TRANSIT_MS = 500, 700
CHUNK_MS = 200
"""The longest that a chunk of a call is on its way; it has two, and the rest is for a busy host."""
UNSURE_MS = 300
"""Of the reset: the steps of the broker's clock and the term of a takeover."""
BEGUN_MS = time.time_ns() // 1_000_000
"""From here on every third window of 5 s is one of 7."""
WAITING = 12
ENDED_IN_S = 120.0
"""On a busy host; what is lost costs leases and holds before it is tried again."""
CEILING = 100


def _window(name: str, limit: int, window_ms: int, **over: object) -> DimensionConfig:
    fields = {"unit": name.partition("-")[0], "kind": "sliding", "pace_percent": 100, **over}
    return DimensionConfig(
        name=DimensionName(name), limit=limit, window_ms=Millis(window_ms), **fields
    )


WINDOWS = (
    _window("requests-1s", 6, 1_000),
    _window("tokens-10s", 80_000, 10_000),
    _window(
        "requests-5s",
        12,
        5_000,
        kind="fixed",
        reset_ms=0,
        later_resets_ms=tuple(range(BEGUN_MS, BEGUN_MS + 18 * 17_000, 17_000)),
        reset_uncertainty_ms=UNSURE_MS,
    ),
    _window("tokens-7s", 65_000, 7_000, kind="fixed", amount="actual"),
)
SLOTS = DimensionConfig(name=DimensionName("slots"), unit="slots", kind="concurrency", limit=6)


class Pressure(Storm):
    """Work always waits; what fails most is the owner, and in between some calls go through."""

    calm_s = 1.5, 4.0
    is_on = True

    def _submit(self) -> None:
        world = self._world
        world.look()
        for tenant in ("t1", "t2"):
            missing = WAITING - (len(world.submitted) - len(world.ended))
            effect = self._chance.choice(("unsafe", "keyed", "read_only"))
            world.submit(max(0, missing), effect, tenant=tenant, output_tokens_max=CEILING)

    def _let_pass(self, span_s: float) -> None:
        until = time.monotonic() + span_s
        while time.monotonic() < until:
            super()._let_pass(0.2)
            if self.is_on:
                self._submit()

    def heal(self) -> None:
        self.is_on = False
        super().heal()


FAILS = (
    *(Storm.kill_scheduler, Storm.stop_scheduler, Storm.step_clock) * 2,
    *(Storm.kill_worker, Storm.stop_worker, Storm.cut),
)


@pytest.mark.parametrize(
    ("at_ms", "held", "margin_ms"),
    [((0, 0, 1_001), 2, 1.0), ((0, 0, 1_000), 2, 0.0), ((0, 0, 999), 3, -1.0), ((0, 0), 2, None)],
)
def test_the_judge_knows_to_the_millisecond_how_near_a_limit_came(
    at_ms: tuple[int, ...], held: int, margin_ms: float | None
) -> None:
    two_a_second = _window("requests-1s", 2, 1_000)
    calls = [Call(one * 1_000_000, tokens=9) for one in at_ms]
    assert (most(calls, two_a_second), nearest_ms(calls, two_a_second)) == (held, margin_ms)


def test_the_judge_knows_where_a_known_window_begins() -> None:
    fixed = _window("tokens-1s", 20, 1_000, kind="fixed", reset_ms=500)
    calls = [Call(one * 1_000_000, tokens=9) for one in (1_400, 1_490, 1_510, 1_600)]
    assert most(calls, fixed) == 18
    assert most(calls, fixed, ahead_ns=50_000_000) == 27
    longer = replace(fixed, later_resets_ms=(1_550,))
    assert [most(calls, longer, ahead_ns=one * 1_000_000) for one in (0, 45, 150)] == [27, 18, 36]


def test_the_brokers_clock_steps(behind_ports: CutBroker) -> None:
    clock = behind_ports.clock
    if not clock.can_step:
        pytest.skip("needs a C compiler: the broker's clock does not step")
    log = Log(behind_ports.bootstrap, prefix=f"c{uuid4().hex[:12]}")
    CellTopics(KafkaAdmin(log.bootstrap), log.prefix, log.cell).create(1)
    ahead_ms = []
    for off_ms in (0, 10_000, 0):
        clock.step_to(off_ms)
        log.send(Topic.JOURNAL, raw=b"noise")
        ahead_ms.append(log.read(Topic.JOURNAL)[-1].append_ms - time.time_ns() // 1_000_000)
    assert [round(one, -4) for one in ahead_ms] == [0, 10_000, 0]


def test_no_window_ever_holds_too_much_by_the_providers_own_record(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = Random(SEED)

    def delay_s() -> float:
        return chance.choice((0, chance.random(), 1)) * CHUNK_MS / 1_000

    world.configure(
        standing=SEED % 2 == 0,
        send_within_ms=Millis(SEND_WITHIN_MS),
        transit_ms=Millis(TRANSIT_MS),
        dimensions=(*WINDOWS, SLOTS),
    )
    world.worker_env = {"LATE_MS": str(SEND_WITHIN_MS)}
    with world.slow_way(delay_s):
        storm = Pressure(world, SEED, FAILS)
        try:
            storm.rage(FAULTS)
            world.until_ended(ENDED_IN_S)
            told = _judged(world)
            world.judged()
        except AssertionError as broken:
            done = "\n".join(storm.told)
            again = f"Again: make chaos SEED={SEED} ROUNDS=1"
            raise AssertionError(f"{broken}\n{done}\n{again}") from broken
        finally:
            world.clock.step_to(0)
    with capsys.disabled():
        print(f"\n{told}")  # noqa: T201 - how near it came is for people


def _judged(world: World) -> str:
    """How near each window came to its limit; the provider's clock is this host's."""
    calls = [Call(line["arrived_ns"], line["tokens"]) for line in world.record()]
    ahead_ns = time.time_ns() - time.monotonic_ns()
    told = [f"{len(calls)} calls"]
    for one in WINDOWS:
        held = most(calls, one, ahead_ns=ahead_ns)
        told.append(f"{one.name} {held} of {one.limit}")
        if one.reset_ms is None:
            margin_ms = nearest_ms(calls, one)
            told[-1] += "" if margin_ms is None else f", {margin_ms:.0f} ms apart"
        assert held <= one.limit, f"Expected no overshoot: {'; '.join(told)}"
    return "; ".join(told)
