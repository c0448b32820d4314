"""The core and the reference model see the same random histories and say the same (R159).

`HISTORIES=10000` makes the run that the requirement names; history n is always the same one.
"""

import os
from collections import Counter
from collections.abc import Iterable
from itertools import zip_longest
from random import Random
from typing import Any

import msgspec
import pytest

from schemas import events as e
from schemas import inputs as i
from schemas.codes import Code
from schemas.journal import CAUSE_DISPATCH
from streams.core import (
    admission,
    budgets,
    checkpoints,
    corrections,
    costs,
    dispatch,
    lanes,
    leases,
    pace,
    retries,
    saving,
    settlement,
    standing,
)
from streams.core.counters import Counter as TenantCounter
from streams.core.fairness import Lane
from streams.core.outcomes import Fits
from streams.core.queues import TAKEN, Queue
from streams.core.state import State
from streams.core.windows import Window
from tests.contract.reference import Reference
from tests.contract.reference_asker import Asker, setup
from tests.contract.reference_turns import Turn
from tests.support import cells as s
from tests.support import core as c

HISTORIES = int(os.environ.get("HISTORIES", "500"))
ENTRIES = 40
POLICIES = ("fifo", "round_robin", "weighted_round_robin", "strict_priority", "virtual_counter",
            "deficit_round_robin")  # fmt: skip

DETAILS = {
    e.OperationAdmitted: "operation incarnation sequence deadline_ms",
    e.OperationRejected: "operation code binds_key",
    e.DuplicateObserved: "operation state code",
    e.SubmissionConflicted: "operation",
    e.CancellationRemembered: "operation until_ms",
    e.CancellationForgotten: "operation",
    e.OperationCancelled: "operation",
    e.CancelSignalled: "operation epoch",
    e.GrantIssued: "operation member attempt epoch claim_by_ms tokens money_micros"
    " checkpoint checkpoint_ref started_ms by_floor skipped",
    e.GrantRevoked: "operation epoch reason",
    e.GrantExpired: "operation epoch",
    e.StartAccepted: "operation epoch latest_arrival_ms commits_entitlement",
    e.StartRefused: "operation epoch code",
    e.SendObserved: "operation latest_arrival_ms",
    e.ResultRecorded: "operation outcome late",
    e.ResultRefusedStale: "operation epoch code",
    e.ReservationSettled: "operation epoch tokens_actual input_tokens_actual money_micros"
    " overdraft_tokens held_ms cost_ns",
    e.ReservationReleased: "operation reason",
    e.ReservationExpired: "operation",
    e.OperationExpired: "operation reason",
    e.OperationForgotten: "operation",
    e.InputQuarantined: "code",
    e.LeaseClaimed: "operation epoch expires_ms",
    e.ClaimRefused: "operation epoch code",
    e.PlacesOffered: "member sent_ms time_ms authority_epoch",
    e.LeasesRenewed: "member expires_ms unnamed",
    e.RenewRefused: "operation epoch",
    e.LeasesExtended: "by_ms",
    e.LeaseExpired: "operation epoch started",
    e.CheckpointRecorded: "operation number",
    e.CheckpointRefused: "operation number code",
    e.OutcomeMarkedUnknown: "operation epoch cause hold_until_ms",
    e.EvidenceRecorded: "operation epoch evidence",
    e.OutcomeReconciled: "operation epoch source verdict",
    e.ReservationForfeited: "operation epoch held_ms",
    e.OperatorActionNeeded: "operation reason",
    e.RetryScheduled: "operation epoch cause not_before_ms",
    e.OperationUnparked: "operation",
    e.OperationDeadLettered: "operation reason",
    e.ManualRetryAccepted: "operation deadline_ms",
    e.ManualActionRefused: "operation action code",
    e.CooldownSet: "domain cause until_ms",
    e.UsageCorrected: "operation epoch tokens_before tokens_actual input_tokens_before"
    " input_tokens_actual money_before_micros money_actual_micros",
    e.UsageRefused: "operation epoch code",
    e.SavingStarted: "operation skips",
}
"""The decisions that both must agree on, and what is compared of each."""


class Differs(Exception):
    """The core said something else than the reference; it says what."""


class Both:
    """The core and the reference, asked the same."""

    def __init__(self, policy: str) -> None:
        self.policy = policy
        self.core, self.reference = c.Core(), Reference()
        self.submitted: list[i.OperationSubmitted] = []
        self.grants: list[e.GrantIssued] = []
        self.unclear: list[e.GrantIssued] = []
        """Grants of operations whose outcome was unknown."""
        self.said: Counter[str] = Counter()
        self.run(setup(policy))

    def run(
        self, inputs: list[Any], *, after_ms: int = 0, timers: bool = True, silence_ms: int = 0
    ) -> None:
        """One entry; fails with the first decision that differs, or the window that does."""
        self.core.silence_ms = silence_ms
        events = self.core.run(*inputs, after_ms=after_ms, timers=timers)
        self.grants += s.grants(events)
        unclear = {c.named(one)["operation"] for one in c.only(e.OutcomeMarkedUnknown, events)}
        self.unclear += [one for one in self.grants if one.operation in unclear]
        _, decided = self.core.entries[-1]
        pass_over = [one.event for one in decided if one.cause == CAUSE_DISPATCH]
        told = c.only((e.GrantIssued, e.OperationExpired), pass_over)
        self.reference.said_to_save = frozenset(
            event.operation
            for event in pass_over
            if isinstance(event, e.SavingStarted)
            or (isinstance(event, e.OperationDeferred) and event.held_by == "far")
        )
        expected = self.reference.entry(
            inputs,
            self.core.now_ms,
            [turn_of(event) for event in told],
            timers=timers,
            silence_ms=silence_ms,
        )
        got = [shown(event) for event in events if type(event) in DETAILS]
        self.said.update(name for name, *_ in got)
        for core, reference in zip_longest(got, expected):
            if core != reference:
                raise Differs(f"Expected {reference}, but the core says {core}")
        for (scope, domain, name), window in self.core.state.config.windows.items():
            used = self.reference.ledger.used((scope, domain, window.config))
            if window.used != used:
                raise Differs(f"Expected {used} in {scope} {domain} {name}, not {window.used}")

    def take_over(self, step_ms: int) -> None:
        self.core.now_ms += step_ms
        self.core.take_over(step_ms=step_ms)
        self.reference.take_over(step_ms)


def turn_of(event: e.GrantIssued | e.OperationExpired) -> Turn:
    if isinstance(event, e.OperationExpired):
        return Turn(event.operation, by_floor=False, skipped=None)
    return Turn(event.operation, event.by_floor, event.skipped)


def shown(event: Any) -> tuple[Any, ...]:
    kind = type(event)
    return (kind.__name__, *(plain(getattr(event, name)) for name in DETAILS[kind].split()))


def plain(value: Any) -> Any:
    """Leases as pairs, anything else as it is."""
    return [(o.operation, o.epoch) for o in value] if isinstance(value, tuple) else value


def play(seed: int) -> Counter[str]:
    """Both over one history; how often the core decided what."""
    chance = Random(seed)
    both = Both(chance.choice(POLICIES))
    asker = Asker(chance, both, own=seed % 4 == 3)
    for _ in range(ENTRIES):
        if chance.random() < 0.04:
            both.take_over(chance.choice([0, 0, 5_000]))
        inputs = [asker.ask() for _ in range(chance.choice([0, 1, 2, 5]))]
        after_ms = chance.choice([0, 1, 10, 100, 400, 5_000 if chance.random() < 0.1 else 0])
        silence_ms = min(after_ms, 300) if chance.random() < 0.04 else 0
        both.run(inputs, after_ms=after_ms, timers=chance.random() < 0.9, silence_ms=silence_ms)
    return both.said


def disagreement(seeds: Iterable[int]) -> str | None:
    """The first difference in these histories."""
    for seed in seeds:
        try:
            play(seed)
        except Differs as error:
            return f"seed {seed}: {error}"
    return None


def test_over_random_histories_core_and_reference_decide_the_same_and_every_decision_occurs():
    said: Counter[str] = Counter()
    for seed in range(HISTORIES):
        said.update(play(seed))
    assert set(said) == {kind.__name__ for kind in DETAILS}


def early(dimension: i.DimensionConfig, **about: Any) -> int:
    return budgets_exit_ms(dimension, **about) - 300


def all_equal(dimension: i.DimensionConfig, **about: Any) -> int:
    return budgets_exit_ms(msgspec.structs.replace(dimension, later_resets_ms=()), **about)


def charged_for_good(window: Window, amount: int, now_ms: Any) -> None:
    if amount < 0:
        window.add(amount)
    else:
        window_charge(window, amount, now_ms)


def taken_alone(lane: Lane, counter: TenantCounter, queue: Queue, at: str) -> None:
    if at == TAKEN or queue.at == queue.pool:
        turned(lane, counter, queue, at)


def any_number(state: State, asked: i.CheckpointReported) -> Code | None:
    code = refusal(state, asked)
    return None if code is Code.CHECKPOINT_GAP else code


turned = Lane.turned
refusal = checkpoints._refusal
priced = costs.priced
budgets_exit_ms, settled_cost_ns = budgets.exit_ms, settlement.settled_cost_ns
ends_ms, window_charge = leases.ends_ms, Window.charge

FAULTS = {
    "nothing is ever full": (dispatch, "check", lambda *_, **__: Fits(), "says ('GrantIssued'"),
    "no pace": (pace, "opens_ms", lambda *_: 0, "says ('GrantIssued'"),
    "what is refunded owes the pace": (Window, "charge", charged_for_good, "GrantIssued"),
    "youngest first": (Lane, "_turn", lambda _, __, head: -head.sequence, "GrantIssued"),
    "bulk leaves nothing": (lanes, "reserve", lambda *_: 0, "GrantIssued"),
    "nobody saves": (saving, "first_in_line", lambda *_: [], "SavingStarted"),
    "no caps": (admission, "_caps", lambda *_: None, "-queue-full"),
    "exits too early": (budgets, "exit_ms", early, ", not"),
    "all days are equal": (budgets, "exit_ms", all_equal, ", not"),
    "nobody looks": (State, "touch_waiting", lambda _: None, "Expected ('GrantIssued'"),
    "nobody hears of a freed member": (Lane, "turned", taken_alone, "Expected ('GrantIssued'"),
    "a wrong price": (
        settlement,
        "settled_cost_ns",
        lambda *about, **more: settled_cost_ns(*about, **more) + 1,
        "ReservationSettled",
    ),
    "money is for nothing": (costs, "money_of", lambda *_: 0, "GrantIssued"),
    "all input is output": (settlement, "priced", lambda of, a, b: priced(of, 0, a + b), "Settled"),
    "leases last too long": (leases, "ends_ms", lambda *of: ends_ms(*of) + 50, "Lease"),
    "unsafe work is tried again": (
        retries,
        "SAFE",
        frozenset({"unsafe", "keyed", "read_only"}),
        "RetryScheduled",
    ),
    "everybody waits longer": (retries, "backoff_ms", lambda ms, _: ms + 1, "RetryScheduled"),
    "unsafe work starts at once": (
        standing,
        "REPEATABLE",
        frozenset({"unsafe", "keyed", "read_only"}),
        "GrantIssued",
    ),
    "nobody pays": (retries, "_credit", lambda *_: 10_000, "RetryScheduled"),
    "a pause is forgotten": (retries, "paused", lambda *_: None, "GrantIssued"),
    "gaps are let through": (checkpoints, "_refusal", any_number, "Checkpoint"),
    "late usage is for nothing": (corrections, "_beyond", lambda *_: 0, "tokens"),
    "deadlines are kept too long": (settlement, "deadline_due", lambda *_: [], "OperationExpired"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_the_core_is_found_and_named(fault, monkeypatch):
    where, name, planted, named = FAULTS[fault]
    monkeypatch.setattr(where, name, planted)
    assert named in (disagreement(range(100)) or "nothing")
