"""The only function that changes the state: one arm for each event, each a fold in its own room."""

from typing import assert_never

from schemas import events as e

from . import (
    admission,
    cancellation,
    checkpoints,
    configuration,
    corrections,
    dispatch,
    granting,
    leases,
    membership,
    parking,
    reconciliation,
    results,
    retries,
    saving,
    settlement,
    standing,
    starts,
    unknowns,
)
from .state import State


def evolve(state: State, event: e.Event) -> None:  # noqa: C901, PLR0912 - one arm an event
    """Remember one event; the only function that changes the state. Frequent events come first."""
    match event:
        case e.OperationAdmitted():
            admission.admitted(state, event)
        case e.GrantIssued():
            granting.granted(state, event)
        case e.LeaseClaimed():
            leases.claimed(state, event)
        case e.StartAccepted():
            starts.accepted(state, event)
        case e.ResultRecorded():
            results.recorded(state, event)
        case e.ReservationSettled():
            settlement.settled(state, event)
        case e.SendObserved():
            starts.observed(state, event)
        case e.OperationRejected():
            admission.rejected(state, event)
        case e.OperationForgotten():
            admission.forgotten(state, event.operation)
        case e.OperationParked():
            parking.parked(state, event)
        case e.OperationUnparked():
            parking.unparked(state, event)
        case e.OperationDeferred():
            dispatch.deferred(state, event)
        case e.SavingStarted():
            saving.started(state, event)
        case e.OperationExpired():
            dispatch.expired(state, event)
        case e.OperationCancelled():
            cancellation.cancelled(state, event)
        case e.CancelSignalled():
            cancellation.signalled(state, event)
        case e.CancellationRemembered():
            cancellation.remembered(state, event)
        case e.CancellationForgotten():
            cancellation.forgotten(state, event)
        case e.ReservationReleased() | e.ReservationExpired():
            settlement.returned(state, event)
        case e.GrantExpired() | e.GrantRevoked():
            settlement.grant_ended(state, event)
        case _:
            _evolve_rest(state, event)


_Trouble = (
    e.LeasesRenewed
    | e.LeasesReviewed
    | e.LeasesExtended
    | e.LeaseExpired
    | e.CheckpointRecorded
    | e.OutcomeMarkedUnknown
    | e.EvidenceRecorded
    | e.OutcomeReconciled
    | e.ReservationForfeited
    | e.OperatorActionNeeded
    | e.RetryScheduled
    | e.OperationDeadLettered
    | e.ManualRetryAccepted
    | e.UsageCorrected
    | e.CooldownSet
)
_Rest = (
    _Trouble
    | membership.Lived
    | e.PlacesOffered
    | e.ConfigActivated
    | e.CellBegan
    | e.DuplicateObserved
    | e.SubmissionConflicted
    | e.StartRefused
    | e.ResultRefusedStale
    | e.JoinRefused
    | e.ConfigRefused
    | e.InputQuarantined
    | e.ClaimRefused
    | e.RenewRefused
    | e.CheckpointRefused
    | e.UsageRefused
    | e.ManualActionRefused
)


def _evolve_rest(state: State, event: _Rest) -> None:
    """Members, configuration, and what is only told."""
    match event:
        case (
            e.HeartbeatRecorded()
            | e.MemberSlotGranted()
            | e.MemberActivated()
            | e.MemberRestored()
            | e.MemberSuspected()
            | e.MemberDrainRequested()
            | e.MemberLost()
            | e.MemberSlotReturned()
        ):
            membership.fold(state, event)
        case e.PlacesOffered():
            standing.offered(state, event)
        case e.ConfigActivated():
            configuration.activated(state, event)
        case e.CellBegan():
            configuration.began(state, event)
        case (
            e.DuplicateObserved()
            | e.SubmissionConflicted()
            | e.StartRefused()
            | e.ResultRefusedStale()
            | e.JoinRefused()
            | e.ConfigRefused()
            | e.InputQuarantined()
            | e.ClaimRefused()
            | e.RenewRefused()
            | e.CheckpointRefused()
            | e.UsageRefused()
            | e.ManualActionRefused()
        ):
            pass  # told to whoever asked; the state stays as it is
        case _:
            _evolve_trouble(state, event)


def _evolve_trouble(state: State, event: _Trouble) -> None:  # noqa: C901, PLR0912 - one arm an event
    """Leases, progress, and what became of attempts that did not simply end."""
    match event:
        case e.LeasesRenewed():
            leases.renewed(state, event)
        case e.LeasesReviewed():
            leases.reviewed(state, event)
        case e.LeasesExtended():
            leases.extended(state, event)
        case e.LeaseExpired():
            leases.expired(state, event)
        case e.CheckpointRecorded():
            checkpoints.recorded(state, event)
        case e.OutcomeMarkedUnknown():
            unknowns.marked(state, event)
        case e.EvidenceRecorded():
            reconciliation.noted(state, event)
        case e.OutcomeReconciled():
            reconciliation.reconciled(state, event)
        case e.ReservationForfeited():
            settlement.forfeited(state, event)
        case e.OperatorActionNeeded():
            unknowns.closed(state, event)
        case e.RetryScheduled():
            retries.scheduled(state, event)
        case e.OperationDeadLettered():
            retries.dead(state, event)
        case e.ManualRetryAccepted():
            retries.retried(state, event)
        case e.UsageCorrected():
            corrections.corrected(state, event)
        case e.CooldownSet():
            retries.paused(state, event)
        case _:
            assert_never(event)
