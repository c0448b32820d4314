"""Field cases about what is counted, by their numbers: quota units that differ from billed ones."""

import pytest

from schemas import events as e
from schemas.codes import Code
from schemas.inputs import Prices
from streams.core import invariants
from tests.support import cells as s
from tests.support import core as c
from tests.support.scene import MINUTE, Scene, tokens

LONG = 10**6
"""A call that does not end within the case."""
FIVEFOLD = Prices(currency="XXX", input_micros=10**6, output_micros=5 * 10**6)
"""A quota that counts an output token five times, as money without a currency."""
QUOTA = c.dimension("money", 100_000, amount="actual", **MINUTE)
SPENT = [
    # input and output used, quota and billed tokens
    ((2_005, 200), 3_005, 2_205),
    ((6, 12), 66, 18),
    ((10, 750), 3_760, 760),
]


def quota():
    return Scene(QUOTA, tokens(10**6, amount="actual"), prices=FIVEFOLD, call_s=LONG)


@pytest.mark.parametrize(("used", "units", "billed"), SPENT)
def test_f23_a_quota_that_counts_output_five_times_is_no_count_of_tokens(used, units, billed):
    scene = quota()
    scene.at(0, scene.job("call", 5_000, output_tokens_max=1_000))
    assert [s.used(scene.cell, name) for name in ("money", "tokens")] == [10_000, 6_000]
    prompt, output = used
    (_, grant) = scene.grants[0]
    scene.at(1, c.result(grant, prompt_tokens=prompt, output_tokens=output))
    assert [s.used(scene.cell, name) for name in ("money", "tokens")] == [units, billed]
    assert list(invariants.broken(scene.cell.state)) == []


def test_f23_a_call_whose_worst_case_exceeds_the_quota_is_refused_and_waits_for_nothing():
    scene = quota()
    scene.at(61, scene.job("fits", 1_000, output_tokens_max=19_800))
    refused = s.one(
        e.OperationRejected, scene.at(62, scene.job("worst", 1_000, output_tokens_max=20_000))
    )
    assert (refused.code, refused.dimension) == (Code.NEVER_FITS, "money")
    assert list(scene.times()) == ["fits"]
