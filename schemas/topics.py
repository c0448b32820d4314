"""Every topic of a cell: its name, key, partitions, settings, who writes it and what it holds.

Partitions are chosen by murmur2 of the key, as Java's client does. A producer on librdkafka must
set `partitioner=murmur2_random`, since its default (CRC32) lands in quarantine.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from operator import attrgetter
from types import MappingProxyType
from typing import Any

from . import events as e
from . import inputs as i
from .ids import CellId

PARTITIONS = 8
RECORD_BYTES_MAX = 8 * 1024 * 1024
INPUT_BYTES_MAX = 64 * 1024
"""An input is ids, numbers and short references; a larger one is quarantined, so that no input can
make an entry too large for the journal."""
ENTRY_BYTES_MAX = 7 * 1024 * 1024
"""An entry stays below the topic's limit, so that headers and framing always fit."""


class Topic(StrEnum):
    """Short names; `full_name` makes the name on the cluster."""

    SUBMISSIONS = "submissions"
    CANCELLATIONS = "cancellations"
    STARTS = "starts"
    RESULTS = "results"
    MEMBERS = "members"
    CONTROL = "control"
    JOURNAL = "journal"
    PULSE = "pulse"
    DECISIONS = "decisions"
    GRANTS = "grants"
    SETTLEMENTS = "settlements"
    CAPACITY = "capacity"
    DELIVERIES = "deliveries"
    QUARANTINE = "quarantine"


INPUT_TOPICS = (
    Topic.SUBMISSIONS,
    Topic.CANCELLATIONS,
    Topic.STARTS,
    Topic.RESULTS,
    Topic.MEMBERS,
    Topic.CONTROL,
)
"""Numbered by place: `InputRun.topic` is an index into it. Never reordered."""

OUTPUT_TOPICS = (
    Topic.DECISIONS,
    Topic.GRANTS,
    Topic.SETTLEMENTS,
    Topic.CAPACITY,
    Topic.DELIVERIES,
    Topic.QUARANTINE,
)

_APPEND_TIME = MappingProxyType({"message.timestamp.type": "LogAppendTime"})
_KEPT = MappingProxyType({"retention.ms": "-1", "cleanup.policy": "delete"})
_DAYS_30 = MappingProxyType({"retention.ms": str(30 * 86_400_000), "cleanup.policy": "delete"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSpec:
    """What `evenhand topics apply` creates and every program checks."""

    writer: str
    key: str
    holds: tuple[type, ...]
    settings: MappingProxyType[str, str]
    single_partition: bool = False
    all_settings: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        merged = {"max.message.bytes": str(RECORD_BYTES_MAX), **self.settings}
        object.__setattr__(self, "all_settings", merged)


def _input(key: str, *holds: type) -> TopicSpec:
    return TopicSpec(
        writer="services, workers and operators", key=key, holds=holds, settings=_DAYS_30
    )


def _output(key: str, *holds: type) -> TopicSpec:
    return TopicSpec(writer="the owner", key=key, holds=holds, settings=_KEPT)


_TO_DECISIONS = (
    e.OperationAdmitted,
    e.OperationRejected,
    e.DuplicateObserved,
    e.SubmissionConflicted,
    e.OperationParked,
    e.OperationUnparked,
    e.OperationDeferred,
    e.SavingStarted,
    e.OperationExpired,
    e.OperationCancelled,
    e.CancellationRemembered,
    e.CancellationForgotten,
    e.OperationForgotten,
    e.LeaseClaimed,
    e.StartAccepted,
    e.StartRefused,
    e.SendObserved,
    e.CancelSignalled,
    e.ResultRecorded,
    e.ResultRefusedStale,
    e.ClaimRefused,
    e.LeaseExpired,
    e.CheckpointRecorded,
    e.CheckpointRefused,
    e.OutcomeMarkedUnknown,
    e.EvidenceRecorded,
    e.OutcomeReconciled,
    e.OperatorActionNeeded,
    e.RetryScheduled,
    e.OperationDeadLettered,
    e.ManualRetryAccepted,
    e.ManualActionRefused,
    e.UsageRefused,
)
_TO_GRANTS = (e.GrantIssued, e.GrantExpired, e.GrantRevoked)
_TO_SETTLEMENTS = (
    e.ReservationSettled,
    e.ReservationReleased,
    e.ReservationExpired,
    e.ReservationForfeited,
    e.UsageCorrected,
)
_TO_CAPACITY = (
    e.CellBegan,
    e.ConfigActivated,
    e.ConfigRefused,
    e.MemberSlotGranted,
    e.JoinRefused,
    e.MemberActivated,
    e.HeartbeatRecorded,
    e.PlacesOffered,
    e.MemberDrainRequested,
    e.MemberSuspected,
    e.MemberRestored,
    e.MemberLost,
    e.MemberSlotReturned,
    e.LeasesRenewed,
    e.RenewRefused,
    e.LeasesReviewed,
    e.LeasesExtended,
    e.CooldownSet,
)
_TO_DELIVERIES = (
    e.GrantIssued,
    e.GrantExpired,
    e.GrantRevoked,
    e.StartAccepted,
    e.StartRefused,
    e.CancelSignalled,
    e.ClaimRefused,
    e.LeaseExpired,
    e.RenewRefused,
    e.CheckpointRecorded,
    e.CheckpointRefused,
    e.OperationRejected,
    e.DuplicateObserved,
    e.SubmissionConflicted,
    e.OperationExpired,
    e.OperationCancelled,
    e.OperationDeadLettered,
    e.OperatorActionNeeded,
    e.MemberSlotGranted,
    e.JoinRefused,
    e.PlacesOffered,
    e.MemberLost,
    e.MemberSlotReturned,
)
"""What one member must know now; an event without a member is not delivered."""

TOPICS: dict[Topic, TopicSpec] = {
    Topic.SUBMISSIONS: _input("tenant", i.OperationSubmitted),
    Topic.CANCELLATIONS: _input("tenant", i.CancellationRequested),
    Topic.STARTS: _input(
        "tenant", i.ClaimRequested, i.StartRequested, i.SendReported, i.CheckpointReported
    ),
    Topic.RESULTS: _input("tenant", i.ResultReported, i.UsageReported, i.OutcomeEvidence),
    Topic.MEMBERS: _input("member", i.JoinRequested, i.HeartbeatReported, i.LeaveAnnounced),
    Topic.CONTROL: _input(
        "name or tenant", i.ConfigProposed, i.ReconcileRequested, i.RetryRequested
    ),
    Topic.JOURNAL: TopicSpec(
        writer="the owner",
        key="cell",
        holds=(),
        settings=MappingProxyType({**_KEPT, **_APPEND_TIME}),
        single_partition=True,
    ),
    Topic.PULSE: TopicSpec(
        writer="the owner",
        key="cell",
        holds=(),
        settings=MappingProxyType({**_APPEND_TIME, "retention.ms": "600000"}),
        single_partition=True,
    ),
    Topic.DECISIONS: _output("tenant", *_TO_DECISIONS),
    Topic.GRANTS: _output("tenant", *_TO_GRANTS),
    Topic.SETTLEMENTS: _output("tenant", *_TO_SETTLEMENTS),
    Topic.CAPACITY: _output("member", *_TO_CAPACITY),
    Topic.DELIVERIES: _output("member", *_TO_DELIVERIES),
    Topic.QUARANTINE: _output("topic:partition:offset", e.InputQuarantined),
}


def full_name(prefix: str, cell: CellId, topic: Topic) -> str:
    """The topic's name on the cluster: `<prefix>.<cell>.<topic>`."""
    return f"{prefix}.{cell}.{topic}"


def input_key(word: Any) -> str:
    """The key that an input must carry: its tenant, its member, or the configured name."""
    key: str = _INPUT_KEYS[type(word)](word)
    return key


_INPUT_KEY_FIELDS: dict[type, str] = {
    i.JoinRequested: "member",
    i.HeartbeatReported: "member",
    i.LeaveAnnounced: "member",
    i.ConfigProposed: "name",
}
"""The key of an input, where it is not its tenant."""

_INPUT_KEYS: dict[type, Callable[[Any], str]] = {
    kind: attrgetter(_INPUT_KEY_FIELDS.get(kind, "tenant"))
    for topic in INPUT_TOPICS
    for kind in TOPICS[topic].holds
}


_KEY_FIELDS: dict[type, str] = {
    e.CellBegan: "cell",
    e.ConfigActivated: "name",
    e.ConfigRefused: "name",
    e.LeasesExtended: "cell",
    e.CooldownSet: "domain",
}
"""The key of an event on `capacity`, where it is not its member."""


def _key_of(topic: Topic, kind: type) -> Callable[[Any], str | None]:
    match topic:
        case Topic.QUARANTINE:
            return lambda event: f"{event.topic}:{event.partition}:{event.offset}"
        case Topic.CAPACITY:
            return attrgetter(_KEY_FIELDS.get(kind, "member"))
        case Topic.DELIVERIES:
            return attrgetter("member")
        case _:
            return attrgetter("tenant")


_ROUTES = {
    kind: [(topic, _key_of(topic, kind)) for topic in OUTPUT_TOPICS if kind in TOPICS[topic].holds]
    for home in OUTPUT_TOPICS
    for kind in TOPICS[home].holds
}
"""Topic and key of each public copy of an event; `deliveries` comes last."""


def routes(event: Any) -> list[tuple[Topic, str]]:
    """Where the public copies of an event go: topic and key, `deliveries` last.

    Returns: at least one route for every event; the values are the event's own bytes. An event
    that names no member is not delivered.
    """
    return [(topic, key) for topic, key_of in _ROUTES[type(event)] if (key := key_of(event))]
