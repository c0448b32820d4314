r"""Keys of view rows: parts that sort and never run into each other.

A name is written after its length, a number in eight big-endian bytes, so that all rows of one
tenant, or of one queue in admission order, lie side by side:

>>> join("acme", 7)
b'\x00\x04acme\x00\x00\x00\x00\x00\x00\x00\x07'
>>> names(join("acme", "interactive"))
('acme', 'interactive')
"""

from functools import lru_cache

NUMBER_MAX = 2**64 - 1
KEYS_KEPT = 4_096
"""Keys made before: most are of a tenant, domain or member alone, and come again and again."""


@lru_cache(KEYS_KEPT)
def join(*parts: str | int) -> bytes:
    """One key from names and numbers."""
    return b"".join(
        [_name(part) if isinstance(part, str) else part.to_bytes(8, "big") for part in parts]
    )


def _name(name: str) -> bytes:
    encoded = name.encode()
    return len(encoded).to_bytes(2, "big") + encoded


def names(key: bytes) -> tuple[str, ...]:
    """The parts of a key that was made of names only."""
    found, at = [], 0
    while at < len(key):
        end = at + 2 + int.from_bytes(key[at : at + 2], "big")
        found.append(key[at + 2 : end].decode())
        at = end
    return tuple(found)


def after(prefix: bytes) -> bytes:
    """The first key beyond all keys that begin with `prefix`; every prefix of ours has one."""
    return (int.from_bytes(prefix, "big") + 1).to_bytes(len(prefix), "big")
