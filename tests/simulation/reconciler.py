"""Who makes unknown outcomes known: a program that asks the provider, and operators."""

from dataclasses import dataclass
from random import Random

from schemas import events as e
from schemas import inputs as i
from schemas.units import Millis
from tests.simulation.clock import MILLI, SimulatedClock
from tests.simulation.crew import SEND_WITHIN_MS, TRANSIT_MS
from tests.simulation.faults import Faults
from tests.simulation.inputs import InputTopics
from tests.simulation.provider import Provider

LOOKUPS_MAX = 20
UNSEEN_US = (SEND_WITHIN_MS + TRANSIT_MS + 20) * MILLI
"""So long after an outcome became unknown its call can arrive no more."""
ENDS = {"success": "completed", "terminal": "failed"}


@dataclass
class Reconciler:
    """Hears of unknown outcomes from the follower, and looks each up until it knows."""

    random: Random
    clock: SimulatedClock
    inputs: InputTopics
    provider: Provider
    faults: Faults

    def hear(self, event: e.Event) -> None:
        match event:
            case e.OutcomeMarkedUnknown() if self.random.random() > self.faults.blind:
                self._look_later(event, self.clock.now_us, 0)
            case e.OutcomeMarkedUnknown() if self.random.random() < self.faults.operator:
                self._after(900, lambda: self._decide(event))
            case e.OperationDeadLettered() | e.OperatorActionNeeded():
                if self.random.random() < self.faults.operator:
                    self._after(200, lambda: self._retry(event))
            case _:
                pass

    def _after(self, most_ms: int, happens: object) -> None:
        assert callable(happens), "Expected something to happen"
        self.clock.after(self.random.randint(1, most_ms) * MILLI, happens)

    def _look_later(self, event: e.OutcomeMarkedUnknown, since_us: int, looked: int) -> None:
        if looked < LOOKUPS_MAX:
            self._after(120, lambda: self._look(event, since_us, looked))

    def _look(self, event: e.OutcomeMarkedUnknown, since_us: int, looked: int) -> None:
        """Ask the provider; tell what it says, sometimes twice."""
        verdict = self._verdict(event, since_us)
        told = i.OutcomeEvidence(
            tenant=event.tenant, operation=event.operation, incarnation=event.incarnation,
            epoch=event.epoch, evidence=f"look-up {looked}", verdict=verdict,
            confidence="provider_reported",
        )  # fmt: skip
        for _ in range(1 + (self.random.random() < self.faults.repeat)):
            self.inputs.send(told)
        if verdict == "inconclusive":
            self._look_later(event, since_us, looked + 1)

    def _verdict(self, event: e.OutcomeMarkedUnknown, since_us: int) -> str:
        call = self.provider.find((event.operation, event.incarnation, event.epoch))
        if call is None:
            is_over = self.clock.now_us - since_us > UNSEEN_US
            return "not_executed" if is_over else "inconclusive"
        return (
            ENDS.get(call.outcome, "failed")
            if call.ended_us <= self.clock.now_us
            else "inconclusive"
        )

    def _decide(self, event: e.OutcomeMarkedUnknown) -> None:
        """An operator says what the provider's record says, or gives it up."""
        verdict = self._verdict(event, self.clock.now_us)
        self.inputs.send(
            i.ReconcileRequested(
                tenant=event.tenant, operation=event.operation, epoch=event.epoch,
                verdict="abandoned" if verdict == "inconclusive" else verdict,
                author="operator", reason="looked it up",
            )
        )  # fmt: skip

    def _retry(self, event: e.OperationDeadLettered | e.OperatorActionNeeded) -> None:
        self.inputs.send(
            i.RetryRequested(
                tenant=event.tenant, operation=event.operation, start_within_ms=Millis(600),
                author="operator", reason="once more",
            )
        )  # fmt: skip
