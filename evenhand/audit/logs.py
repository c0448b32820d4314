"""Port to the topics of a cell: each partition as one stream of records, up to a fixed end."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from schemas.envelope import Headers
from schemas.topics import Topic


class LogTrimmed(Exception):
    """A wanted offset is gone: what cannot be read cannot be audited. Stop."""


class LogSilent(Exception):
    """No broker answers, or a topic is missing. Nothing was judged; try again."""


class Record(NamedTuple):
    """One record as it is on its partition."""

    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers | None


class Logs(Protocol):
    """The topics of one cell.

    The end of a partition is fixed when it is first read, so that an audit of a live cell ends:
    the journal is read first, hence everything that its entries took or published before is
    within reach.
    """

    def partitions(self, topic: Topic) -> int:
        """How many partitions the topic has."""
        ...

    def start(self, topic: Topic, partition: int) -> int:
        """The first offset that is still there."""
        ...

    def read(self, topic: Topic, partition: int, first: int) -> Iterator[Record]:
        """The records from `first` on, in order, up to the end seen when this was called.

        Raises:
            LogTrimmed: `first` is before `start`.
            LogSilent: no answer; also while the records are read.
        """
        ...
