"""A reconciler: asks providers what became of unknown outcomes, and tells the cell."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import Any, Final, Protocol, Self

from evenhand._reconciling import Confidence, Found, Reconciliation, Unknown, Verdict
from evenhand._transport import Kafka
from evenhand._words import inputs

__all__ = ["Confidence", "Found", "Reconciler", "Unknown", "Verdict"]

BACK_S: Final = 3600.0
"""Four times the hold bound that cells start with: what is older is closed."""
LOOK_UPS_AT_ONCE: Final = 8
READ_WAIT_S: Final = 0.1
"""How late it can be with a look-up, and how long `stop` may take beside look-ups."""
CLOSE_WAIT_S: Final = 10.0

_LOG = logging.getLogger("evenhand")


class Decisions(Protocol):
    """Where unknown outcomes are read, and evidence is told."""

    def read(self, wait_s: float) -> Sequence[Any]:
        """Events in order per partition; waits only if none is there."""
        ...

    def tell(self, word: inputs.OutcomeEvidence) -> None:
        """Hand it over; it goes out by itself."""
        ...

    def close(self, wait_s: float) -> None:
        """Wait until every word is durable, at most `wait_s`, and let go."""
        ...


class Reconciler:
    """Looks up every unknown outcome of its domains until it is known, or the hold is over.

    Any number may run: the same evidence counts once. One that starts looks back over an hour, so
    nothing is lost while none runs.

        def look_up(unknown: Unknown) -> Found | None:
            call = ask_provider(unknown.provider_key)
            if call is None:
                return Found(verdict=Verdict.NOT_EXECUTED, evidence=f"none-{unknown.provider_key}")
            return Found(verdict=Verdict.COMPLETED, evidence=call.id,
                         prompt_tokens=call.prompt_tokens, output_tokens=call.output_tokens)

        Reconciler(look_up, domains=["gpt"]).run()
    """

    def __init__(
        self,
        look_up: Callable[[Unknown], Found | None],
        *,
        domains: Sequence[str],
        kafka: Kafka | None = None,
        back_s: float = BACK_S,
        look_ups_at_once: int = LOOK_UPS_AT_ONCE,
    ) -> None:
        """Nothing happens before `run` or entering the context.

        Args:
            look_up: asks the provider, from several threads. None or an exception says nothing; it
                is asked again later, up to twelve times in all.
            domains: budget domains whose provider it can ask.
            kafka: the cell's topics; None means `Kafka()`, which reads the environment.
            back_s: how far back it reads at its start; at least the longest hold of the domains.
            look_ups_at_once: how many may wait for the provider.
        """
        self._look_up, self._back_s = look_up, back_s
        self._kafka = kafka or Kafka()
        self._reconciliation = Reconciliation(frozenset(domains), time.monotonic)
        self._most = look_ups_at_once
        self._asked: dict[Future[Found | None], Unknown] = {}
        self._stop = threading.Event()
        self._finished: Future[None] = Future()

    def run(self) -> None:
        """Work until `stop` is called. Blocks.

        Raises:
            Unreachable: no broker answered at the start.
            LinkLost: events may have been missed; start a new one.
        """
        with self:
            self._finished.result()

    def stop(self) -> None:
        """End after the look-ups that are under way. Does not wait."""
        self._stop.set()

    def __enter__(self) -> Self:
        """Work in the background."""
        decisions = self._kafka.decisions(self._back_s)
        threading.Thread(
            target=partial(self._work, decisions), name="evenhand-reconciler", daemon=True
        ).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End in order."""
        self.stop()
        try:
            self._finished.result()
        except Exception:
            if error is None:
                raise

    def _work(self, decisions: Decisions) -> None:
        failure: Exception | None = None
        try:
            with ThreadPoolExecutor(self._most, "evenhand-look-up") as crew:
                while not self._stop.is_set():
                    self._turn(decisions, crew)
            self._answer(decisions)
        except Exception as error:  # noqa: BLE001 - it is raised where `run` waits
            failure = error
        decisions.close(CLOSE_WAIT_S)
        if failure is None:
            self._finished.set_result(None)
        else:
            self._finished.set_exception(failure)

    def _turn(self, decisions: Decisions, crew: ThreadPoolExecutor) -> None:
        for event in decisions.read(READ_WAIT_S):
            self._reconciliation.heard(event)
        self._answer(decisions)
        for unknown in self._reconciliation.due(self._most - len(self._asked)):
            self._asked[crew.submit(self._look_up, unknown)] = unknown

    def _answer(self, decisions: Decisions) -> None:
        for answer in [asked for asked in self._asked if asked.done()]:
            unknown, found = self._asked.pop(answer), None
            try:
                found = answer.result()
            except Exception as error:  # noqa: BLE001 - a provider that is away says nothing
                _LOG.warning("A look-up of %s failed: %r", unknown.operation, error)
            word = self._reconciliation.looked_up(unknown, found)
            if word is not None:
                decisions.tell(word)
