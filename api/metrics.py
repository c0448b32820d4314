"""What the views count, for Prometheus: computed at each scrape from one snapshot, labels bounded.

The largest tenants have series of their own, all others are `other` together; exact figures of
everybody come from the API. No operation, member, key or address is ever a label.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Final, Literal, NamedTuple

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from projections.queries import Queries, offered
from projections.views.ledger import Ledger, total
from projections.views.tenant import Tenant
from schemas.ids import CellId

TENANTS_MAX: Final = 200
"""Tenants with series of their own, by submissions."""
OTHER: Final = "other"
"""All other tenants."""
MEDIA_TYPE: Final = CONTENT_TYPE_LATEST
MS_PER_S: Final = 1_000

Name = Literal[
    "evenhand_submissions_total",
    "evenhand_suspected_new_keys_total",
    "evenhand_rejections_total",
    "evenhand_operations",
    "evenhand_starts_total",
    "evenhand_operations_started_total",
    "evenhand_tokens_total",
    "evenhand_tokens_estimated_total",
    "evenhand_tokens_observed_total",
    "evenhand_provider_outcomes_total",
    "evenhand_reconciled_total",
    "evenhand_retries_total",
    "evenhand_dead_letters_total",
    "evenhand_domain_paused",
    "evenhand_slots",
    "evenhand_unknown_outcomes",
    "evenhand_unknown_overdue",
    "evenhand_unknown_oldest_seconds",
    "evenhand_quarantined_total",
    "evenhand_balance_residue",
]
METRICS: Final[dict[Name, str]] = {
    "evenhand_submissions_total": "Submissions decided, by tenant and decision.",
    "evenhand_suspected_new_keys_total": "Payloads admitted again soon under another key.",
    "evenhand_rejections_total": "Submissions refused, by code.",
    "evenhand_operations": "Operations by tenant and state: now if it is live, else ever.",
    "evenhand_starts_total": "Accepted starts; over operations started it is retry amplification.",
    "evenhand_operations_started_total": "Operations with a start.",
    "evenhand_tokens_total": "Tokens of closed reservations: reserved, charged, overdraft.",
    "evenhand_tokens_estimated_total": "Tokens reserved for calls whose use is known.",
    "evenhand_tokens_observed_total": "Tokens that those calls used.",
    "evenhand_provider_outcomes_total": "Results by class, and outcomes that became unknown.",
    "evenhand_reconciled_total": "Unknown outcomes that became known or bounded, by source.",
    "evenhand_retries_total": "Attempts scheduled again, by cause.",
    "evenhand_dead_letters_total": "Operations whose attempts were used up, by reason.",
    "evenhand_domain_paused": "1 while nothing is granted because of what the provider said.",
    "evenhand_slots": "Slots given out: held, active or unknown.",
    "evenhand_unknown_outcomes": "Attempts whose outcome is unknown.",
    "evenhand_unknown_overdue": "Unknown outcomes still held though their bound has passed.",
    "evenhand_unknown_oldest_seconds": "Age of the oldest unknown outcome; 0 without any.",
    "evenhand_quarantined_total": "Inputs that could not be read, by topic.",
    "evenhand_balance_residue": "Submissions or operations unaccounted for; 0 unless at fault.",
}


class _Share(NamedTuple):
    """What one series of a tenant stands for."""

    rows: list[Tenant]
    used: Ledger
    suspected: int


class _Views(Collector):
    """The families of one snapshot."""

    def __init__(self, cell: CellId, asked: Queries) -> None:
        self._cell, self._asked = cell, asked
        self._tenants = {name: row for name, (row, _) in asked.tenants().items()}

    def collect(self) -> Iterable[Metric]:
        """Everything, once."""
        yield from self._of_tenants()
        yield from self._of_domains()
        yield from self._of_unknowns()
        balance = self._asked.balance(list(self._tenants.values()))
        yield self._gauge("evenhand_balance_residue", "of", Counter(balance._asdict()))
        quarantined = Counter(self._asked.quarantined())
        yield self._counter("evenhand_quarantined_total", "topic", quarantined)

    def _shares(self) -> dict[str, _Share]:
        """Tenants as they are shown: the largest alone, the rest together."""
        by_size = sorted(self._tenants, key=lambda name: -offered(self._tenants[name]))
        groups = {name: [name] for name in by_size[:TENANTS_MAX]}
        if by_size[TENANTS_MAX:]:
            groups[OTHER] = groups.get(OTHER, []) + by_size[TENANTS_MAX:]
        return {
            shown: _Share(
                [self._tenants[name] for name in names],
                total(row for name in names for row in self._asked.ledgers(name).values()),
                sum(map(self._asked.suspected_new_keys, names)),
            )
            for shown, names in groups.items()
        }

    def _of_tenants(self) -> Iterator[Metric]:
        decided = self._new(CounterMetricFamily, "evenhand_submissions_total", "tenant", "decision")
        states = self._new(GaugeMetricFamily, "evenhand_operations", "tenant", "state")
        starts = self._new(CounterMetricFamily, "evenhand_starts_total", "tenant")
        started = self._new(CounterMetricFamily, "evenhand_operations_started_total", "tenant")
        tokens = self._new(CounterMetricFamily, "evenhand_tokens_total", "tenant", "kind")
        estimated = self._new(CounterMetricFamily, "evenhand_tokens_estimated_total", "tenant")
        observed = self._new(CounterMetricFamily, "evenhand_tokens_observed_total", "tenant")
        suspected = self._new(CounterMetricFamily, "evenhand_suspected_new_keys_total", "tenant")
        for name, (rows, used, repeats) in self._shares().items():
            suspected.add_metric([self._cell, name], repeats)
            for decision, count in _decisions(rows).items():
                decided.add_metric([self._cell, name, decision], count)
            phases = sum((Counter(row.phases) for row in rows), Counter[str]())
            for state, count in phases.items():
                states.add_metric([self._cell, name, state], count)
            starts.add_metric([self._cell, name], used.starts)
            started.add_metric([self._cell, name], used.committed)
            tokens.add_metric([self._cell, name, "reserved"], used.tokens_reserved)
            tokens.add_metric([self._cell, name, "charged"], used.tokens_charged)
            tokens.add_metric([self._cell, name, "overdraft"], used.overdraft_tokens)
            estimated.add_metric([self._cell, name], used.tokens_estimated)
            observed.add_metric([self._cell, name], used.tokens_observed)
        yield from (decided, states, starts, started, tokens, estimated, observed, suspected)
        refused = sum((Counter(row.refusals) for row in self._tenants.values()), Counter[str]())
        yield self._counter("evenhand_rejections_total", "code", refused)

    def _of_domains(self) -> Iterator[Metric]:
        outcomes = self._new(
            CounterMetricFamily, "evenhand_provider_outcomes_total", "domain", "outcome"
        )
        known = self._new(CounterMetricFamily, "evenhand_reconciled_total", "domain", "source")
        retries = self._new(CounterMetricFamily, "evenhand_retries_total", "domain", "cause")
        dead = self._new(CounterMetricFamily, "evenhand_dead_letters_total", "domain", "reason")
        paused = self._new(GaugeMetricFamily, "evenhand_domain_paused", "domain")
        for name, row in self._asked.domains().items():
            counts = (row.outcomes, row.reconciled, row.retries, row.dead)
            for family, by_kind in zip((outcomes, known, retries, dead), counts, strict=True):
                for kind, count in by_kind.items():
                    family.add_metric([self._cell, name, kind], count)
            paused.add_metric([self._cell, name], int(row.is_paused(self._asked.time_ms)))
        yield from (outcomes, known, retries, dead, paused)

    def _of_unknowns(self) -> Iterator[Metric]:
        now_ms = self._asked.time_ms
        count, overdue, age_ms = Counter[str](), Counter[str](), defaultdict[str, int](int)
        for one in self._asked.unknowns():
            domain, doubt = one.row.domain, one.row.doubt
            assert doubt is not None, "Expected an attempt in doubt"
            count[domain] += 1
            overdue[domain] += one.row.held and now_ms > doubt.hold_until_ms
            age_ms[domain] = max(age_ms[domain], now_ms - one.since_ms)
        slots = self._new(GaugeMetricFamily, "evenhand_slots", "domain", "state")
        unknown = self._new(GaugeMetricFamily, "evenhand_unknown_outcomes", "domain")
        late = self._new(GaugeMetricFamily, "evenhand_unknown_overdue", "domain")
        oldest = self._new(GaugeMetricFamily, "evenhand_unknown_oldest_seconds", "domain")
        for domain, use in self._asked.slots().items():
            slots.add_metric([self._cell, domain, "held"], use.held)
            slots.add_metric([self._cell, domain, "active"], use.in_use - use.unknown)
            slots.add_metric([self._cell, domain, "unknown"], use.unknown)
            unknown.add_metric([self._cell, domain], count[domain])
            late.add_metric([self._cell, domain], overdue[domain])
            oldest.add_metric([self._cell, domain], age_ms[domain] / MS_PER_S)
        yield from (slots, unknown, late, oldest)

    def _new(
        self, kind: type[CounterMetricFamily | GaugeMetricFamily], name: Name, *labels: str
    ) -> CounterMetricFamily | GaugeMetricFamily:
        return kind(name, METRICS[name], labels=["cell", *labels])

    def _counter(self, name: Name, label: str, counts: Counter[str]) -> Metric:
        return self._filled(CounterMetricFamily, name, label, counts)

    def _gauge(self, name: Name, label: str, counts: Counter[str]) -> Metric:
        return self._filled(GaugeMetricFamily, name, label, counts)

    def _filled(
        self,
        kind: type[CounterMetricFamily | GaugeMetricFamily],
        name: Name,
        label: str,
        counts: Counter[str],
    ) -> Metric:
        family = self._new(kind, name, label)
        for one, count in counts.items():
            family.add_metric([self._cell, one], count)
        return family


def _decisions(rows: Iterable[Tenant]) -> Counter[str]:
    found = Counter[str]()
    for row in rows:
        found["admitted"] += row.admitted
        found["rejected"] += sum(row.refusals.values())
        found["duplicate"] += row.duplicates
        found["conflict"] += row.conflicts
    return found


def exposition(cell: CellId, asked: Queries) -> bytes:
    """All metrics of one snapshot as text."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Views(cell, asked))
    return generate_latest(registry)
