"""Ten thousand changes of configuration at once: each is answered, and work goes on meanwhile."""

from collections import Counter
from functools import partial
from random import Random

from schemas import events as e
from schemas import inputs as i
from schemas.codec import decode
from schemas.ids import DimensionName
from schemas.topics import ENTRY_BYTES_MAX, Topic
from schemas.units import Millis
from tests.support.asked import DOMAIN
from tests.support.kafka import Log
from tests.support.rig import Rig, Worker

PROPOSALS, PARTS = 10_000, 20
BY = {"author": "operator", "reason": "a flood"}


def _limits(slots: int, window_ms: int = 60_000) -> i.ConfigProposed:
    dimensions = (
        i.DimensionConfig(
            name=DimensionName("slots"), unit="slots", kind="concurrency", limit=slots
        ),
        i.DimensionConfig(
            name=DimensionName("requests"),
            unit="requests",
            kind="sliding",
            limit=10**6,
            window_ms=Millis(window_ms),
        ),
    )
    return i.ConfigProposed(
        scope="domain", name=DOMAIN, domain=i.DomainConfig(dimensions=dimensions), **BY
    )


def _proposal(chance: Random) -> i.ConfigProposed:
    """Limits below use, of zero, negative or without a window; weights of zero and others."""
    if chance.random() < 0.5:
        weight = chance.choice((0, 1, 5, 10**6, 10**7))
        tenant = i.TenantConfig(weight=weight)
        return i.ConfigProposed(scope="tenant", name="t1", tenant=tenant, **BY)
    return _limits(chance.choice((-1, 0, 1, 4, 100)), chance.choice((0, 60_000, 60_000)))


def test_ten_thousand_proposals_are_each_answered_while_work_goes_on(rig: Rig, log: Log) -> None:
    rig.scheduler()
    rig.configure(slots=4)
    worker, chance = Worker(log), Random(5)
    answers: Counter[type] = Counter()

    def answered(count: int) -> bool:
        answers.update(type(event) for event in rig.capacity.new())
        return answers[e.ConfigActivated] + answers[e.ConfigRefused] >= count

    for part in range(1, PARTS + 1):
        rig.submit(4, first=4 * part)
        words = [_proposal(chance) for _ in range(PROPOSALS // PARTS - 1)]
        log.send(Topic.CONTROL, *words, _limits(4))
        done = partial(answered, PROPOSALS // PARTS * part)
        rig.until(done, f"every answer of part {part}", worker)
    rig.until_settled(4 * PARTS, worker)
    assert answers[e.ConfigRefused] > PROPOSALS / 10
    assert answers[e.ConfigActivated] + answers[e.ConfigRefused] == PROPOSALS
    records = log.read(Topic.JOURNAL)
    assert max(len(record.value or b"") for record in records) < ENTRY_BYTES_MAX / 10
    kinds = [{type(decode(one.body)) for one in entry.events} for entry in rig.entries()]
    changes = [n for n, kind in enumerate(kinds) if e.ConfigActivated in kind]
    busy = [n for n, kind in enumerate(kinds) if e.ResultRecorded in kind]
    during = [n for n in busy if changes[0] < n < changes[-1]]
    assert len(during) >= PARTS
    rig.judged()
