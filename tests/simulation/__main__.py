"""`python -m tests.simulation --seed 7 --count 100`: worlds in a row, each from its seed."""

import argparse
import sys
import time
from random import Random

from tests.simulation.world import World


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1)
    asked = parser.parse_args()
    for seed in range(asked.seed, asked.seed + asked.count):
        print(f"seed {seed}", flush=True)
        begun = time.monotonic()
        world = World(Random(seed))
        try:
            digest = world.run()
        except BaseException:
            print(f"Replay: make sim SEED={seed}", flush=True)
            raise
        spent = time.monotonic() - begun
        lives = world.lives
        print(
            f"  {spent:.2f} s, {len(world.journal.records)} records, epoch "
            f"{world.epoch}, {lives.admitted} admitted, {lives.succeeded} succeeded"
        )
        print(f"journal {digest}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
