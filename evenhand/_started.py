"""What a member has started: whose leases its heart renews, and what the cell says of each."""

from collections.abc import Iterator
from typing import Final, Generic

from evenhand._attempt import A
from evenhand._words import events, ids, inputs, units

LEASES_PER_BEAT_MAX: Final = 1_024
"""As many as a cell takes in one heartbeat."""

AttemptKey = tuple[ids.OperationId, int]
"""Operation and epoch: no epoch of an operation is ever used again (requirements R68)."""
AboutStarted = (
    events.CancelSignalled
    | events.LeaseExpired
    | events.RenewRefused
    | events.CheckpointRecorded
    | events.CheckpointRefused
)


class Started(Generic[A]):
    """Started attempts until their results are durable.

    Only `is_as_told` and `beats` are for another thread too.
    """

    def __init__(self) -> None:
        self._attempts: dict[AttemptKey, A] = {}

    def __len__(self) -> int:
        return len(self._attempts)

    def __contains__(self, key: AttemptKey) -> bool:
        return key in self._attempts

    def add(self, attempt: A) -> None:
        """Its call may go out."""
        self._attempts[_key(attempt)] = attempt

    def drop(self, attempt: A) -> None:
        """Its result is durable: the lease needs no renewal any more."""
        self._attempts.pop(_key(attempt), None)

    def is_as_told(self, epoch: ids.MemberEpoch) -> bool:
        """Whether the owner knows of each attempt here that it takes a place of this life."""
        attempts = self._attempts.copy().values()
        return all(one.grant.member_epoch == epoch and not one.lease_lost for one in attempts)

    def beats(
        self, member: ids.MemberId, epoch: ids.MemberEpoch, sent_ms: units.Millis | None
    ) -> Iterator[inputs.HeartbeatReported]:
        """A sign of life of the member that renews the leases of this life.

        Args:
            member: who is alive.
            epoch: which life of it.
            sent_ms: its own clock, if it offers its free places.

        Returns: one heartbeat, or more if there are many leases.
        """
        # The copy is made in one step, which no other thread can come between.
        grants = [attempt.grant for attempt in self._attempts.copy().values()]
        leases = [
            inputs.LeaseName(operation=grant.operation, epoch=grant.epoch)
            for grant in grants
            if grant.member_epoch == epoch
        ]
        for first in range(0, max(1, len(leases)), LEASES_PER_BEAT_MAX):
            some = tuple(leases[first : first + LEASES_PER_BEAT_MAX])
            yield inputs.HeartbeatReported(
                member=member, member_epoch=epoch, leases=some, sent_ms=sent_ms
            )

    def heard(self, event: AboutStarted) -> None:
        """Let the attempt know, if it has not ended."""
        attempt = self._attempts.get((event.operation, event.epoch))
        if attempt is None:
            return
        match event:
            case events.CancelSignalled():
                attempt.request_cancel()
            case events.LeaseExpired() | events.RenewRefused():
                attempt.lose_lease()
            case events.CheckpointRecorded() | events.CheckpointRefused():
                attempt.hear_checkpoint(event)


def _key(attempt: A) -> AttemptKey:
    return (attempt.grant.operation, attempt.grant.epoch)
