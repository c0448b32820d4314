"""Other limiters on the same requests: what each lets through against the limit of the provider.

Each gets an environment of its own below `out/`, and none is a dependency of the project.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from evenhand.dev.play import TENANTS, arrivals
from tests.benchmarks.environments import ENVIRONMENTS, Unavailable, play
from tests.benchmarks.play import SEED, Call, Play, Way, dimension, tenants
from tests.benchmarks.record import MILLI, Record, Seen
from tests.benchmarks.result import Result, not_run

FIRST_MINUTE, MINUTES = 10, 6
TOKENS_MAX, REQUESTS_MAX = 500_000, 400
"""A minute; about half of what is asked for."""
ON_THE_WAY_US = 300 * MILLI
"""Each call arrives at the provider so much later at most."""
DIMENSIONS = (dimension("requests", REQUESTS_MAX), dimension("tokens", TOKENS_MAX))


class Rival(NamedTuple):
    """Its name here, its script, and what it needs."""

    name: str
    script: str
    packages: Sequence[str]


RIVALS = (
    Rival("litellm", "litellm_router.py", ("litellm==1.110.2", "time-machine==3.6.0")),
    Rival("limits", "limits_moving_window.py", ("limits==5.8.0", "time-machine==3.6.0")),
    Rival("aiolimiter", "aiolimiter_bucket.py", ("aiolimiter==1.3.0",)),
)


def run(*, quick: bool) -> Iterator[Result]:
    """`limiter-<name>`: the most tokens in any window of a minute, as a part of the limit.

    By the provider's record, each call up to 0.3 s later than it was let through.
    """
    if quick:
        yield not_run("limiters", "they need environments of their own; run without QUICK")
        return
    asked = arrivals(first_minute=FIRST_MINUTE, minutes=MINUTES, speed_up=1)
    yield _row("evenhand", _evenhand(asked))
    trace = ENVIRONMENTS / "trace.json"
    trace.parent.mkdir(parents=True, exist_ok=True)
    trace.write_text(
        json.dumps(
            {
                "requests": [
                    [int(one.at_ms), one.prompt.prompt_tokens + one.prompt.generated_tokens]
                    for one in asked
                ],
                "requests_max": REQUESTS_MAX,
                "tokens_max": TOKENS_MAX,
                "span_ms": MINUTES * 60_000,
            }
        )
    )
    for rival in RIVALS:
        try:
            admitted = _admitted(rival, trace)
        except Unavailable as error:
            yield not_run(f"limiter-{rival.name}", str(error))
        else:
            yield _row(rival.name, _arrived(admitted))


def _row(name: str, record: Record) -> Result:
    requests, tokens = (record.peak(one) / one.limit for one in DIMENSIONS)
    used = sum(call.used for call in record.calls) / (TOKENS_MAX * MINUTES)
    parts = {"requests": f"{requests:.3f}", "of the tokens of all minutes": f"{used:.1%}"}
    return Result(name=f"limiter-{name}", value=tokens, unit="of limit", floor=1, parts=parts)


def _evenhand(asked: Sequence) -> Record:
    cell = Play(
        DIMENSIONS,
        tenants(**dict.fromkeys(TENANTS, 1)),
        way=Way(ask_us=2 * MILLI, transit_us=ON_THE_WAY_US),
        domain={"report_send": True, "transit_ms": ON_THE_WAY_US // MILLI},
    )
    for one in asked:
        tokens = one.prompt.prompt_tokens + one.prompt.generated_tokens
        cell.submit_at(int(one.at_ms * MILLI), Call(one.tenant, tokens, one.prompt.service_ms(1)))
    cell.run(MINUTES * 60_000 * MILLI)
    return cell.record


def _arrived(admitted: Sequence[tuple[int, int]]) -> Record:
    chance, record = Random(SEED), Record()
    for at_ms, tokens in admitted:
        delay_us = chance.choice((0, ON_THE_WAY_US, chance.randint(0, ON_THE_WAY_US)))
        at_us = at_ms * MILLI + delay_us
        record.calls.append(Seen(at_us, at_us, "all", tokens, tokens))
    return record


def _admitted(rival: Rival, trace: Path) -> list[tuple[int, int]]:
    answer = trace.with_name(f"{rival.name}.json")
    play(rival.script, rival.packages, str(trace), str(answer))
    return [(at_ms, tokens) for at_ms, tokens in json.loads(answer.read_text())]
