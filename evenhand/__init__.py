"""What users import: clients that submit work, workers that run it, and the errors of both."""

from evenhand._attempt import Attempt, Outcome, Result
from evenhand._transport import Kafka, LinkLost
from evenhand.aio import AsyncClient
from evenhand.aio_worker import AsyncWorker
from evenhand.client import Client
from evenhand.errors import EvenhandError, NotSent, Unreachable
from evenhand.worker import Worker

__all__ = [
    "AsyncClient",
    "AsyncWorker",
    "Attempt",
    "Client",
    "EvenhandError",
    "Kafka",
    "LinkLost",
    "NotSent",
    "Outcome",
    "Result",
    "Unreachable",
    "Worker",
]
