"""A burst of A against B and C under every policy, exactly as the golden vectors say."""

from collections.abc import Iterator

from tests.benchmarks.result import Result
from tests.unit.core.test_golden import CAPPED, ORDERS, play, spelled


def run(*, quick: bool) -> Iterator[Result]:
    """`seed-211`: golden vectors met; beside it first and last second of B and C under each policy.

    A12 B3 C3, one slot, one second each; with and without a cap of 8 and a deadline of 10 s.
    """
    met, parts = 0, {}
    for policy, weights, ranks, order, b, d in ORDERS:
        grants, *_ = play(policy, weights, ranks, cap=100, within_ms=3_600_000)
        got = "".join(grant.tenant for grant in grants)
        spans = [(got.index(name), got.rindex(name) + 1) for name in "BC"]
        met += got == spelled(order) and spans == [b, d]
        (b0, b1), (c0, c1) = spans
        parts[f"{policy} {weights} {ranks}"] = f"B {b0}/{b1} C {c0}/{c1}"
    for policy, weights, ranks, golden in CAPPED:
        kinds = play(policy, weights, ranks, cap=8, within_ms=10_000)[:3]
        met += all(
            tuple([one.tenant for one in kind].count(name) for kind in kinds) == counts
            for name, counts in golden.items()
        )
    vectors = len(ORDERS) + len(CAPPED)
    yield Result(name="seed-211", value=met, unit="exact", floor=vectors, parts=parts)
