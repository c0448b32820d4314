"""What may be proposed as a dimension: each contradiction is refused with a sentence of its own."""

import pytest
from msgspec.structs import replace

from schemas import events as e
from schemas.codes import Code
from streams.core.limits import LIMIT_MAX
from tests.support import cells as s
from tests.support import core as c

KNOWN = {"kind": "fixed", "reset_ms": 0, "window_ms": 1_000}
SLOTS = {"kind": "concurrency", "unit": "slots", "window_ms": None}
CONTRADICTIONS = [
    # what is proposed, and what the refusal says
    ({"pace_percent": 10, "kind": "bucket"}, "capacity of a bucket is its burst"),
    ({"pace_percent": 10, "kind": "concurrency", "unit": "slots", "window_ms": None}, "no speed"),
    ({"kind": "bucket", "reset_ms": 0}, "only a fixed window is reset"),
    ({"reset_ms": 0}, "only a fixed window is reset"),
    ({"later_resets_ms": (9,)}, "Expected a reset_ms before the later_resets_ms"),
    ({**SLOTS, "later_resets_ms": (9,)}, "Expected a reset_ms before the later_resets_ms"),
    ({**KNOWN, "later_resets_ms": (0,)}, "half a window or more between 0 and 0"),
    ({**KNOWN, "later_resets_ms": (499,)}, "half a window or more between 0 and 499"),
    ({**KNOWN, "later_resets_ms": (9_000, 8_000)}, "half a window or more between 9000 and 8000"),
    ({**KNOWN, "later_resets_ms": (-(10**15),)}, "half a window or more"),
    ({**KNOWN, "later_resets_ms": (LIMIT_MAX + 1,)}, "at most 64 instants"),
    ({**KNOWN, "later_resets_ms": tuple(range(1_000, 66_000, 1_000))}, "at most 64 instants"),
    ({"window_ms": 0}, "window_ms from 1"),
    ({"window_ms": None}, "window_ms for a window"),
    ({"kind": "concurrency", "unit": "slots"}, "none for concurrency"),
    ({"limit": -1}, "limit from 0"),
    ({"limit": LIMIT_MAX + 1}, "limit from 0"),
    ({"unit": "euros"}, "Expected a unit for tokens (requests, tokens,"),
    ({"kind": "leaky"}, "Expected a kind for tokens (sliding, fixed,"),
    ({"unit": "slots"}, "Expected slots limited by concurrency in tokens, but got kind sliding"),
    (
        {"kind": "concurrency", "window_ms": None},
        "Expected tokens limited by a window or a bucket in tokens, but got kind concurrency",
    ),
    ({"amount": "guessed"}, "amount reserved or actual"),
    ({"instant": "departure"}, "instant arrival or completion"),
]


@pytest.mark.parametrize(("over", "says"), CONTRADICTIONS)
def test_each_contradiction_in_a_dimension_has_a_message_and_a_code_of_its_own(over, says):
    cell = s.cell()
    one = replace(c.dimension("tokens", 1, pace_percent=None), **over)
    refused = s.one(e.ConfigRefused, cell.run(c.domain(one)))
    assert says in refused.detail
    assert refused.code == Code.INVALID_FIELD


def test_two_dimensions_of_one_name_are_refused():
    cell = s.cell()
    twice = c.domain(c.dimension("tokens", 1), c.dimension("tokens", 2))
    detail = "Expected a name of its own for each dimension, but 'tokens' is there twice"
    assert s.one(e.ConfigRefused, cell.run(twice)).detail == detail
