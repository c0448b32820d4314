"""Kills, stops and cut ports at random, under load; the audit and the provider's record judge."""

import os

from tests.chaos.storm import Storm
from tests.chaos.world import World

SEED = int(os.environ.get("SEED", "1"))
FAULTS = int(os.environ.get("FAULTS", "8"))


def test_a_storm_loses_no_work_and_does_none_twice_without_saying_so(world: World) -> None:
    world.configure(standing=SEED % 2 == 0)
    storm = Storm(world, SEED)
    try:
        storm.rage(FAULTS)
        world.until_ended()
        world.judged()
    except AssertionError as broken:
        told = "\n".join(storm.told)
        raise AssertionError(
            f"{broken}\n{told}\nAgain: make chaos SEED={SEED} ROUNDS=1"
        ) from broken
