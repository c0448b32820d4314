"""The play is the one that the traces' description promises."""

from collections import Counter

from evenhand.dev.demo_cell import proposals
from evenhand.dev.play import Prompt, arrivals, prompts


def test_minutes_10_to_20_are_the_play_that_was_tried() -> None:
    play = arrivals(first_minute=10, minutes=10, speed_up=10)
    assert Counter(a.tenant for a in play) == {"code": 2185, "chat-a": 1559, "chat-b": 1559}
    assert all(0 <= a.at_ms < 60_000 for a in play)
    assert [a.at_ms for a in play] == sorted(a.at_ms for a in play)


def test_a_reference_names_its_row() -> None:
    texts = prompts()
    assert len(texts) == 8_819 + 19_366
    assert texts["code/0"] == Prompt(4808, 10)
    assert texts["chat/1"] == Prompt(396, 109)
    play = arrivals(first_minute=0, minutes=2, speed_up=10)
    assert play[0].payload_ref == "chat/0"
    assert all(texts[a.payload_ref] == a.prompt for a in play)


def test_odd_and_even_rows_of_the_conversations_are_two_tenants() -> None:
    play = arrivals(first_minute=0, minutes=0.2, speed_up=1)
    assert [(a.payload_ref, a.tenant) for a in play[:2]] == [
        ("chat/0", "chat-a"),
        ("chat/1", "chat-b"),
    ]


def test_service_time_follows_the_answer() -> None:
    assert Prompt(1, 100).service_ms(10) == 230


def test_workers_report_right_after_sending() -> None:
    (domain,) = (asked.domain for asked in proposals() if asked.domain is not None)
    assert domain.report_send
    assert domain.send_within_ms == 200
