"""How many inputs could not be read, by topic (requirement R141 counts them apart)."""

from projections.keys import join
from projections.projection import Projection, Seen
from schemas import events as e


def _by_topic(seen: Seen) -> bytes | None:
    assert isinstance(seen.event, e.InputQuarantined)
    return join(seen.event.topic)


QUARANTINES = Projection(
    name="quarantine",
    number=17,
    version=1,
    row=int,
    wants=(e.InputQuarantined,),
    key=_by_topic,
    initial=int,
    apply=lambda count, _: count + 1,
)
