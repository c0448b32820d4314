"""Spans as people write them."""

import pytest
import typer

from evenhand.cli.spans import as_text, span_ms


@pytest.mark.parametrize(
    ("text", "ms"),
    [("10m", 600_000), ("1.5s", 1_500), ("250ms", 250), ("2h", 7_200_000), ("1d", 86_400_000)],
)
def test_a_span_is_read(text: str, ms: int) -> None:
    assert span_ms(text) == ms


@pytest.mark.parametrize("text", ["", "10", "m", "-1s", "1 minute", "1e3s"])
def test_anything_else_is_no_span(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="Expected a span"):
        span_ms(text)


@pytest.mark.parametrize(
    ("ms", "text"), [(0, "0s"), (999, "999ms"), (605_000, "10m5s"), (90_061_001, "1d1h")]
)
def test_a_span_is_told_in_its_two_largest_units(ms: int, text: str) -> None:
    assert as_text(ms) == text
