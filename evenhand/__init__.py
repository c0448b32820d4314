"""What users import: clients that submit work, workers that run it, and the errors of both."""

from evenhand._http_link import Http
from evenhand._outcome import Outcome, Result
from evenhand._retry_after import retry_after_s
from evenhand._transport import Kafka
from evenhand.aio import AsyncClient
from evenhand.aio_attempt import AsyncAttempt
from evenhand.aio_worker import AsyncWorker
from evenhand.attempt import Attempt
from evenhand.client import Client
from evenhand.errors import EvenhandError, LinkLost, NotSent, StillRunning, Unreachable
from evenhand.reconciler import Confidence, Found, Reconciler, Unknown, Verdict
from evenhand.worker import Worker

__all__ = [
    "AsyncAttempt",
    "AsyncClient",
    "AsyncWorker",
    "Attempt",
    "Client",
    "Confidence",
    "EvenhandError",
    "Found",
    "Http",
    "Kafka",
    "LinkLost",
    "NotSent",
    "Outcome",
    "Reconciler",
    "Result",
    "StillRunning",
    "Unknown",
    "Unreachable",
    "Verdict",
    "Worker",
    "retry_after_s",
]
