"""The composition root: from settings to a running scheduler, or to a new cell."""

import secrets
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

import structlog

from schemas.ids import OwnerId
from schemas.inputs import TopicIdentity
from schemas.topics import INPUT_TOPICS, Topic
from streams.shell import genesis
from streams.shell.authority import HALTS, Authority
from streams.shell.clock import SystemMonotonic
from streams.shell.journal import AppendFailed, Journal, JournalError
from streams.shell.kafka.admin import CellTopics, ClusterSilent, Described, KafkaAdmin, TopicsDiffer
from streams.shell.kafka.inputs import KafkaInputs
from streams.shell.kafka.journal import KafkaJournal, KafkaPulses
from streams.shell.kafka.outbox import KafkaOutbox
from streams.shell.ports import Ports
from streams.shell.rocks import RocksTables
from streams.shell.settings import Settings
from streams.shell.telemetry import Telemetry, configure_logging
from streams.shell.watch import Watch

_LOOK_AGAIN_S = 0.5
_OWNER_BYTES = 16

STOPPED, HALTED = 0, 1
"""Exit codes of a scheduler: asked to end; an operator must look first."""


def apply_topics(settings: Settings, generation: int = 1) -> bool:
    """Create the cell's topics as declared and begin the cell; harmless when repeated.

    Looks first: of a cell that has begun, nothing is created again.

    Args:
        settings: which cluster and cell, with how many partitions and copies.
        generation: higher than before only when all topics were recreated on purpose.

    Returns: whether the cell has begun now; False if it had begun before.

    Raises:
        ClusterSilent, AppendFailed: no answer; try again.
        TopicsDiffer: a topic exists with other settings.
        CellDiffers, JournalTrimmed: the journal belongs to another beginning.
    """
    admin = KafkaAdmin(settings.bootstrap)
    topics = CellTopics(admin, settings.prefix, settings.cell)
    journal = _journal(settings, admin, topics)
    _look_first(journal, topics, generation)
    topics.create(settings.partitions, settings.replication)
    found = topics.check()
    if found is None:
        raise ClusterSilent("Expected the new topics to be there, but one is not; try again")
    append_timeout_ms = settings.timing.append_timeout_ms
    pulse = KafkaJournal(
        settings.bootstrap, admin, topics.names[Topic.PULSE], append_timeout_ms
    ).writer()
    try:
        return genesis.begin(
            journal,
            pulse,
            cell=settings.cell,
            topics=identities(topics, found),
            generation=generation,
            owner=_owner_id(),
        )
    finally:
        pulse.close()


def run_scheduler(settings: Settings) -> int:
    """Take part in one cell as owner or standby, until SIGTERM or SIGINT, or until halted.

    Waits for broker and topics if they are not there yet. Installs signal handlers, so it belongs
    into the main thread.

    Returns: an exit code, `STOPPED` or `HALTED`; the reason of a halt is in the last alert.
    """
    configure_logging(settings.log_level)
    telemetry = Telemetry(settings.cell)
    if settings.metrics_port is not None:
        telemetry.serve(settings.metrics_host, settings.metrics_port)
    with _asked_to_stop() as stop:
        admin = KafkaAdmin(settings.bootstrap)
        topics = CellTopics(admin, settings.prefix, settings.cell)
        try:
            found = _wait_for_topics(_journal(settings, admin, topics), topics, stop)
        except (JournalError, TopicsDiffer) as error:
            telemetry.alert("halted", f"{type(error).__name__}: {error}")
            return HALTED
        if found is None:
            return STOPPED
        try:
            run(build_ports(settings, admin, topics, found, telemetry), stop)
        except HALTS:
            return HALTED  # the authority has told whoever watches
    return STOPPED


def run(ports: Ports, stop: threading.Event) -> None:
    """Step one authority until `stop` is set; what it holds is let go in any case.

    Raises:
        JournalError, InputTrimmed, TablesInUse, WrongStore: halted.
    """
    authority = Authority(ports)
    try:
        while not stop.is_set():
            authority.step()
    finally:
        authority.close()


def build_ports(
    settings: Settings,
    admin: KafkaAdmin,
    topics: CellTopics,
    found: Mapping[Topic, Described],
    watch: Watch,
) -> Ports:
    """The real world of one cell: Kafka, RocksDB and this host's clock."""
    bootstrap, names = settings.bootstrap, topics.names
    partitions = {topic: found[topic].partitions for topic in INPUT_TOPICS}
    return Ports(
        cell=settings.cell,
        prefix=settings.prefix,
        journal=_journal(settings, admin, topics),
        pulses=lambda: KafkaPulses(bootstrap, admin, names[Topic.PULSE]),
        inputs=lambda: KafkaInputs(bootstrap, admin, names, partitions),
        outbox=lambda: KafkaOutbox(bootstrap, names),
        tables=lambda: RocksTables(settings.tables_dir),
        topic_ids=topics.ids,
        monotonic=SystemMonotonic(),
        watch=watch,
        owner_id=_owner_id,
        chance_ms=lambda up_to_ms: secrets.randbelow(up_to_ms + 1),
        timing=settings.timing,
    )


def identities(topics: CellTopics, found: Mapping[Topic, Described]) -> tuple[TopicIdentity, ...]:
    """Those of the cell's topics that exist, as its first entry records them."""
    return tuple(
        TopicIdentity(name=name, id=found[topic].id, partitions=found[topic].partitions)
        for topic, name in topics.names.items()
        if topic in found
    )


def _look_first(journal: Journal, topics: CellTopics, generation: int) -> None:
    """Refuse, before anything is created, to mend a cell that has begun and lacks a part.

    A journal that is gone records nothing; then `capacity` tells, which begins with the cell.
    """
    found = topics.found()
    exists = Topic.JOURNAL in found
    known = identities(topics, found)
    if exists and genesis.began(journal, topics=known, generation=generation):
        return
    told = found.get(Topic.CAPACITY)
    if told is not None and topics.was_written(Topic.CAPACITY, told.partitions):
        raise genesis.CellDiffers(
            f"Expected the journal that {topics.names[Topic.CAPACITY]} tells of, but it is "
            "missing or empty; delete all topics of the cell before it begins anew"
        )


def _journal(settings: Settings, admin: KafkaAdmin, topics: CellTopics) -> KafkaJournal:
    return KafkaJournal(
        settings.bootstrap,
        admin,
        topics.names[Topic.JOURNAL],
        settings.timing.append_timeout_ms,
    )


def _owner_id() -> OwnerId:
    return OwnerId(secrets.token_bytes(_OWNER_BYTES))


def _wait_for_topics(
    journal: Journal, topics: CellTopics, stop: threading.Event
) -> Mapping[Topic, Described] | None:
    """The topics once they are all there and as declared; None if asked to stop before.

    Raises:
        TopicsDiffer, CellDiffers, JournalTrimmed: waiting would not help.
    """
    last_told = ""
    while not stop.is_set():
        try:
            found = topics.check()
            if found is not None:
                genesis.began(journal, topics=identities(topics, found), generation=None)
                return found
            waiting = "waiting for the cell's topics; `evenhand topics apply` creates them"
        except (ClusterSilent, AppendFailed) as error:
            waiting = str(error)
        if waiting != last_told:
            structlog.get_logger().warning(waiting)
            last_told = waiting
        stop.wait(_LOOK_AGAIN_S)
    return None


@contextmanager
def _asked_to_stop() -> Iterator[threading.Event]:
    """Set by the first SIGTERM or SIGINT; a second one ends the process at once."""
    stop = threading.Event()

    def ask(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signal's own form
        signal.signal(number, signal.SIG_DFL)
        stop.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
