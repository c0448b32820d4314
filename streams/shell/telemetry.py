"""What an operator sees of a scheduler: log lines in JSON and, if a port is set, metrics."""

import logging
import sys
import time
from types import MappingProxyType
from typing import Any, Literal, get_args

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from schemas.ids import CellId
from streams.shell.watch import Alert, EntryMeasures

MetricName = Literal[
    "evenhand_role",
    "evenhand_epoch",
    "evenhand_height",
    "evenhand_entries_total",
    "evenhand_inputs_total",
    "evenhand_events_total",
    "evenhand_entry_bytes_total",
    "evenhand_append_seconds",
    "evenhand_publish_lag_entries",
    "evenhand_restore_lag_entries",
    "evenhand_alerts_total",
]

METRICS: MappingProxyType[MetricName, str] = MappingProxyType(
    {
        "evenhand_role": "1 for the role that this process has in the cell now, else 0",
        "evenhand_epoch": "Authority epoch of the cell as this process last knew it",
        "evenhand_height": "Height of the last accepted entry of this process",
        "evenhand_entries_total": "Accepted entries of this process",
        "evenhand_inputs_total": "Inputs taken by the accepted entries of this process",
        "evenhand_events_total": "Events in the accepted entries of this process",
        "evenhand_entry_bytes_total": "Bytes of the accepted entries of this process",
        "evenhand_append_seconds": "From handing an entry over until its place was reported",
        "evenhand_publish_lag_entries": "Entries whose public records are not all known to be out",
        "evenhand_restore_lag_entries": "Entries between the tables and the journal's end",
        "evenhand_alerts_total": "Things that a person should know, by name",
    }
)
"""Every metric of the write side and what it says."""

APPEND_BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.3, 1.0, 5.0)
"""From the floor of an append on one machine to `append_timeout_ms`."""

CLIENT_LINE_EVERY_S = 5.0
"""While a broker is down every client of a process reports each attempt to connect."""

ROLES = ("restoring", "standby", "claiming", "owner", "halted", "closed")

_LEVELS: MappingProxyType[Alert, int] = MappingProxyType(
    {
        "halted": logging.CRITICAL,
        "stepped_down": logging.WARNING,
        "no_quick_report": logging.WARNING,
        "broker_clock_step": logging.ERROR,
        "slow_append": logging.WARNING,
        "publish_stalled": logging.ERROR,
    }
)


class Telemetry:
    """`Watch`: counts, and writes lines, after the fact; never waits and never decides."""

    def __init__(self, cell: CellId) -> None:
        self.registry = CollectorRegistry()
        self._cell = cell
        self._log = structlog.get_logger().bind(cell=cell)
        self._is_restoring = False
        self._roles = self._of(Gauge, "evenhand_role", "role")
        self._alerts = self._of(Counter, "evenhand_alerts_total", "alert")
        self._epoch = self._of(Gauge, "evenhand_epoch").labels(cell)
        self._height = self._of(Gauge, "evenhand_height").labels(cell)
        self._entries = self._of(Counter, "evenhand_entries_total").labels(cell)
        self._inputs = self._of(Counter, "evenhand_inputs_total").labels(cell)
        self._events = self._of(Counter, "evenhand_events_total").labels(cell)
        self._bytes = self._of(Counter, "evenhand_entry_bytes_total").labels(cell)
        self._publish_lag = self._of(Gauge, "evenhand_publish_lag_entries").labels(cell)
        self._restore_lag = self._of(Gauge, "evenhand_restore_lag_entries").labels(cell)
        self._append = Histogram(
            "evenhand_append_seconds",
            METRICS["evenhand_append_seconds"],
            ["cell"],
            registry=self.registry,
            buckets=APPEND_BUCKETS,
        ).labels(cell)
        for name in get_args(Alert):
            self._alerts.labels(cell, name)  # a counter that begins at 0 can be watched

    def role(self, name: str, epoch: int) -> None:
        """The process entered this role."""
        self._epoch.set(epoch)
        for role in ROLES:
            self._roles.labels(self._cell, role).set(role == name)
        self._log.info("role", role=name, epoch=epoch)

    def progress(self, offset: int, end: int) -> None:
        """Folded up to `offset` of `end` while restoring."""
        lag = max(0, end - offset)
        self._restore_lag.set(lag)
        if (lag > 0) != self._is_restoring:
            self._is_restoring = lag > 0
            self._log.info("restoring" if lag else "restored", offset=offset, end=end)

    def entry(self, measures: EntryMeasures) -> None:
        """An entry was accepted, flushed and handed to the outbox."""
        self._entries.inc()
        self._inputs.inc(measures.inputs)
        self._events.inc(measures.events)
        self._bytes.inc(measures.bytes)
        self._append.observe(measures.append_ms / 1_000)
        self._height.set(measures.height)
        self._publish_lag.set(measures.lag_entries)

    def alert(self, name: Alert, detail: str) -> None:
        """Something that a person should know."""
        self._alerts.labels(self._cell, name).inc()
        self._log.log(_LEVELS[name], name, detail=detail)

    def serve(self, host: str, port: int) -> None:
        """Answer scrapes from a thread of its own for as long as the process lives."""
        start_http_server(port, host, self.registry)

    def _of(self, kind: type[Any], name: MetricName, *labels: str) -> Any:
        return kind(name, METRICS[name], ["cell", *labels], registry=self.registry)


class _Seldom(logging.Filter):
    """Passes a kind of line of the Kafka client once in a while: it tells of every try."""

    def __init__(self) -> None:
        super().__init__()
        self._told_at: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether nothing of this kind was passed lately; the client puts the kind first."""
        kind = str(record.args[0]) if isinstance(record.args, tuple) and record.args else record.msg
        is_due = time.monotonic() - self._told_at.get(kind, float("-inf")) >= CLIENT_LINE_EVERY_S
        if is_due:
            self._told_at[kind] = time.monotonic()
        return is_due


def configure_logging(level: str) -> None:
    """Write every line of this process, the Kafka client's included, as JSON to standard error."""
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    logging.getLogger("librdkafka").addFilter(_Seldom())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
