"""The examples of the how-to pages, run as they stand, with a provider of the test's own."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import evenhand
from evenhand import Client, Kafka, Worker
from evenhand.testing import FakeEvenhand
from schemas.bodies import Operation, State
from tests.support.kafka import until

PAGES = Path(__file__).parents[3] / "docs" / "how-to"
INTENT: dict[str, Any] = {
    "pool": "callers",
    "domain": "openai-gpt",
    "prompt_tokens": 90,
    "output_tokens_max": 30,
    "start_within_ms": 60_000,
    "payload_ref": "prompt",
}


class Overloaded(Exception):
    """The provider's library has such kinds."""


class ContentRefused(Exception):
    """As above."""


class WrongKey(Exception):
    """As above."""


@dataclass
class Reply:
    text: str = "answer"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    prompt_tokens: int = 88
    output_tokens: int = 7
    tool: str | None = None


@dataclass
class Provider:
    """Answers, or fails, in the order in which it was told; keeps what it was asked."""

    script: list[Reply | Exception]
    asked: list[Any] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)

    def ask(self, prompt: Any, *, key: str | None = None, on_sent: Any = None, **_: Any) -> Reply:
        self.asked.append(prompt)
        self.keys.append(key)
        if on_sent is not None:
            on_sent()
        answer = self.script.pop(0) if self.script else Reply()
        if isinstance(answer, Exception):
            raise answer
        return answer


def blocks(page: str) -> dict[str, list[str]]:
    """The examples of a page by the heading above them."""
    found: dict[str, list[str]] = {}
    heading = ""
    text = (PAGES / page).read_text()
    for part in re.split(r"^(#+ .*)$", text, flags=re.MULTILINE):
        if part.startswith("#"):
            heading = part.lstrip("# ")
        examples = re.findall(r"^```python\n(.*?)^```$", part, flags=re.MULTILINE | re.DOTALL)
        if examples:
            found[heading] = examples
    return found


class Bench:
    """A cell in memory, and what the examples take for granted."""

    def __init__(self, *script: Reply | Exception, **kept: Any) -> None:
        self.fake = FakeEvenhand(pools=["callers"], domains=["openai-gpt"])
        self.provider = Provider(list(script))
        self.kept: dict[str, Any] = {"prompt": "why?", **kept}
        self.client = Client(
            transport=self.fake.transport("t"), via=self.fake, tenant="t", user="me"
        )
        self.names: dict[str, Any] = {name: getattr(evenhand, name) for name in evenhand.__all__}
        self.names |= {
            "provider": self.provider,
            "load": self.kept.__getitem__,
            "keep": self.keep,
            "use": lambda tool, question: f"{tool} says {question}",
            "client": self.client,
            "kafka": self.fake,
            "Overloaded": Overloaded,
            "ContentRefused": ContentRefused,
            "WrongKey": WrongKey,
        }

    def keep(self, state: Any) -> str:
        reference = f"s3://{len(self.kept)}"
        self.kept[reference] = state
        return reference

    def run(self, *examples: str) -> None:
        for example in examples:
            exec(example, self.names)

    def ended(self, *, intent: dict[str, Any] | None = None, worker: Any = None) -> Operation:
        told = self.client.submit(**{**INTENT, **(intent or {})}, idempotency_key="one")
        return self.worked(told.operation, worker)

    def worked(self, operation: str, worker: Any = None) -> Operation:
        handle = self.names["handle"]
        with worker or Worker(handle, pool="callers", via=self.fake):
            over = {State.SUCCEEDED, State.FAILED, State.DEAD, State.UNKNOWN, State.CANCELLED}
            until(lambda: self.client.get(operation).state in over, "an end")
        return self.client.get(operation)


REPORTS = blocks("report-what-a-call-did.md")


def test_it_went_out_and_what_it_used() -> None:
    bench = Bench()
    bench.run(*REPORTS["That it went out, and what it used"])
    found = bench.ended()
    assert (found.used_prompt_tokens, found.used_output_tokens) == (88, 7)
    assert bench.kept[str(found.result_ref)] == "answer"


def test_an_error_after_it_went_out_is_unknown() -> None:
    bench = Bench(ConnectionRefusedError())
    bench.run(*REPORTS["That it went out, and what it used"])
    assert bench.ended().state is State.UNKNOWN


def test_the_same_call_under_the_same_key() -> None:
    bench = Bench(TimeoutError())
    bench.run(*REPORTS["The same call under the same key"])
    assert bench.ended(intent={"effect": "keyed"}).state is State.SUCCEEDED
    assert len(bench.provider.keys) == 2
    assert len(set(bench.provider.keys)) == 1


def test_it_was_throttled() -> None:
    bench = Bench(Reply(status=429, headers={"Retry-After": "5"}))
    bench.run(*REPORTS["That it was throttled"])
    assert bench.ended().state is State.SUCCEEDED
    assert len(bench.provider.asked) == 2


def test_how_far_it_is() -> None:
    bench = Bench(Reply("cats."))
    bench.run(*REPORTS["How far it is"])
    used: list[str] = []

    def use(tool: str, text: str) -> str:
        used.append(text)
        if len(used) == 1:
            raise TimeoutError
        return f"{tool}://{text}"

    bench.names["use"] = use
    found = bench.ended(intent={"effect": "keyed"})
    assert (found.result_ref, found.attempt) == ("index://cats.", 2)
    assert bench.provider.asked == ["why?"]
    assert found.used_prompt_tokens == 0


@pytest.mark.parametrize(
    ("error", "state", "calls"),
    [
        (Overloaded(), State.SUCCEEDED, 2),
        (ContentRefused(), State.FAILED, 1),
        (WrongKey(), State.SUCCEEDED, 2),
        (TimeoutError(), State.UNKNOWN, 1),
    ],
)
def test_what_an_exception_means(error: Exception, state: State, calls: int) -> None:
    bench = Bench(error)
    bench.run(*REPORTS["What an exception means"])
    assert bench.ended(worker=bench.names["worker"]).state is state
    assert len(bench.provider.asked) == calls


LOOP = blocks("run-a-tool-loop.md")["Run a bounded tool loop"]


def test_a_tool_loop_ends_within_its_turns() -> None:
    bench = Bench(Reply("cats?", tool="search"), Reply("cats."), question="pets?")
    bench.run(*LOOP)
    found = bench.worked(bench.names["operation"].operation)
    assert bench.kept[str(found.result_ref)] == "cats."
    assert bench.provider.asked[1] == ["pets?", "cats?", "search says cats?"]
    assert len(set(bench.provider.keys)) == 2


def test_a_tool_loop_resumes_from_its_last_checkpoint() -> None:
    script = (Reply("cats?", tool="search"), ConnectionResetError(), Reply("cats."))
    bench = Bench(*script, question="pets?")
    bench.run(*LOOP)
    found = bench.worked(bench.names["operation"].operation)
    assert (found.state, found.attempt) == (State.SUCCEEDED, 2)
    assert bench.provider.asked[1] == bench.provider.asked[2]


def test_a_tool_loop_that_does_not_end_is_ended() -> None:
    bench = Bench(*(Reply("more?", tool="search") for _ in range(9)), question="pets?")
    bench.run(*LOOP)
    found = bench.worked(bench.names["operation"].operation)
    assert (found.state, found.error) == (State.FAILED, "no turn left")
    assert len(bench.provider.asked) == 4


def test_a_tool_that_was_not_admitted_is_not_used() -> None:
    bench = Bench(Reply("rm", tool="shell"), question="pets?")
    bench.run(*LOOP)
    found = bench.worked(bench.names["operation"].operation)
    assert found.state is not State.SUCCEEDED or len(bench.provider.asked) > 1
    assert "shell says rm" not in str(bench.provider.asked)


def test_a_provider_is_looked_up() -> None:
    bench = Bench()
    bench.names["kafka"] = Kafka(bootstrap="nobody:1")
    bench.run(*blocks("make-unknown-outcomes-known.md")["Make unknown outcomes known"])
    unknown = evenhand.Unknown(
        operation="00",
        provider_key="k",
        tenant="t",
        domain="d",
        incarnation=1,
        attempt=1,
        epoch=1,
    )

    @dataclass
    class Call:
        running: bool
        id: str = "call-1"
        prompt_tokens: int = 1
        output_tokens: int = 2
        url: str = "s3://1"

    verdicts = []
    for call in (None, Call(running=True), Call(running=False)):
        bench.provider.find = lambda _, call=call: call  # type: ignore[attr-defined]
        verdicts.append(bench.names["look_up"](unknown).verdict.value)
    assert verdicts == ["not_executed", "inconclusive", "completed"]


def test_every_example_is_run_here() -> None:
    assert set(REPORTS) == {
        "That it went out, and what it used",
        "The same call under the same key",
        "That it was throttled",
        "How far it is",
        "What an exception means",
    }
