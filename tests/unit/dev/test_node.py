"""What every broker of ours is told, wherever it runs."""

import re

import pytest

from evenhand.dev.node import cluster_id


@pytest.mark.parametrize("first", range(256))
def test_no_cluster_id_begins_like_an_option(first):
    made = cluster_id(bytes((first,)) + bytes(range(240, 255)))
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}", made)
