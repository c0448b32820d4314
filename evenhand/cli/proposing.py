"""Sends proposals to `control` and waits on `capacity` for the owner's answer to each."""

import time
from collections.abc import Iterable, Iterator

from evenhand._kafka import KafkaSender, TopicReader
from evenhand._transport import Kafka
from evenhand._words import events, inputs, topics
from evenhand.errors import NoOwner, Unreachable

Answer = events.ConfigActivated | events.ConfigRefused
_READ_S = 0.1


def propose(
    kafka: Kafka, stages: Iterable[list[inputs.ConfigProposed]], *, wait_s: float
) -> Iterator[Answer]:
    """The answer to every proposal, a stage at a time, in the order in which answers come.

    Raises:
        Unreachable: the broker did not take the proposals.
        NoOwner: nobody decided within `wait_s` of a stage; what was sent will be decided later.
    """
    heard = TopicReader(kafka, topics.Topic.CAPACITY)
    sender = KafkaSender(kafka)
    try:
        for stage in stages:
            yield from _stage(stage, sender, heard, wait_s)
    finally:
        heard.close()


def _stage(
    stage: list[inputs.ConfigProposed], sender: KafkaSender, heard: TopicReader, wait_s: float
) -> Iterator[Answer]:
    for proposal in stage:
        sender.send(proposal)
    if not sender.flush(wait_s):
        sender.abandon()
        raise Unreachable("Expected the broker to take the proposals, but it did not")
    open_ = {(proposal.scope, proposal.name, proposal.author) for proposal in stage}
    ends_at = time.monotonic() + wait_s
    while open_:
        if time.monotonic() > ends_at:
            names = ", ".join(f"{scope} {name}" for scope, name, _ in sorted(open_))
            raise NoOwner(f"Expected a decision, but there is none yet for {names}")
        for event in heard.read(_READ_S):
            if not isinstance(event, Answer):
                continue
            asked = (event.scope, event.name, event.author)
            if asked in open_:
                open_.discard(asked)
                yield event
