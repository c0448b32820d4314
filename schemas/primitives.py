"""Avro's primitive values to bytes and back, as the generated `wire` calls them.

The same few tenants, members, counts and instants come again and again, so each value's bytes are
looked up before they are made.
"""

from collections.abc import Callable, Sequence
from typing import Any

LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
INT_MIN, INT_MAX = -(2**31), 2**31 - 1

_MORE = 0x80
"""The bit of a byte that says that its integer goes on in the next one."""

VALUES_MAX = 4_096
"""Values remembered for each kind; then all are forgotten, so that one-time values cost nothing."""
REMEMBERED_BYTES_MAX = 64

NULL, PRESENT = b"\x00", b"\x02"
"""The two branches of `["null", kind]`."""


class Malformed(Exception):
    """Bytes that no encoder writes."""


class _Encoded(dict[Any, bytes]):
    """The bytes of a value, made when it is first asked for."""

    def __init__(self, make: Callable[[Any], bytes]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, value: Any) -> bytes:
        made = self._make(value)
        if len(made) <= REMEMBERED_BYTES_MAX:
            if len(self) >= VALUES_MAX:
                self.clear()
            self[value] = made
        return made


def _varint(value: int) -> bytes:
    """Zigzag, seven bits a byte, the lowest first."""
    rest = (value << 1) ^ (value >> 63)
    out = bytearray()
    while rest >= _MORE:
        out.append(rest & 0x7F | _MORE)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _long(value: int) -> bytes:
    if not LONG_MIN <= value <= LONG_MAX:
        raise ValueError(f"Expected 64 bits, but got {value}")
    return _varint(value)


def _int(value: int) -> bytes:
    if not INT_MIN <= value <= INT_MAX:
        raise ValueError(f"Expected 32 bits, but got {value}")
    return _varint(value)


def _string(value: str) -> bytes:
    data = value.encode()
    return _varint(len(data)) + data


def _nullable(make: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    return lambda value: NULL if value is None else PRESENT + make(value)


LONG, INT, STRING = _Encoded(_long), _Encoded(_int), _Encoded(_string)
LONG_OR_NULL, STRING_OR_NULL = _Encoded(_nullable(_long)), _Encoded(_nullable(_string))
BOOLEAN = {False: b"\x00", True: b"\x01"}


def fixed(value: bytes, size: int) -> bytes:
    """The value, which has `size` bytes.

    Raises:
        ValueError: it has not.
    """
    if len(value) != size:
        raise ValueError(f"Expected {size} bytes, but got {len(value)}")
    return value


def array(values: Sequence[Any], write: Callable[[Any], bytes]) -> list[bytes]:
    """One block of items, and the end of the array."""
    return [LONG[len(values)], *map(write, values), NULL] if values else [NULL]


def read_long(data: bytes, at: int) -> tuple[int, int]:
    """The integer at `at`, and where what follows begins.

    Raises:
        Malformed: it has more than 64 bits.
        IndexError: the bytes end before it does.
    """
    value = shift = 0
    while (byte := data[at]) >= _MORE:
        value |= (byte & 0x7F) << shift
        shift += 7
        at += 1
    value |= byte << shift
    at += 1
    if value >> 64:
        raise Malformed("Expected an integer of 64 bits")
    return (value >> 1) ^ -(value & 1), at


def read_size(data: bytes, at: int) -> tuple[int, int]:
    """A length, which the rest of the bytes can hold.

    Raises:
        Malformed: it is negative or longer than what is left.
        IndexError: as in `read_long`.
    """
    size, at = read_long(data, at)
    if not 0 <= size <= len(data) - at:
        raise Malformed(f"Expected at most {len(data) - at} bytes, but {size} are announced")
    return size, at


def read_string(data: bytes, at: int) -> tuple[str, int]:
    """A text; UnicodeDecodeError if it is none."""
    size, at = read_size(data, at)
    return data[at : at + size].decode(), at + size


def read_boolean(data: bytes, at: int) -> tuple[bool, int]:
    """One byte, 0 or 1."""
    if data[at] > 1:
        raise Malformed(f"Expected 0 or 1, but got {data[at]}")
    return data[at] == 1, at + 1


def read_array(
    data: bytes, at: int, read: Callable[[bytes, int], tuple[Any, int]]
) -> tuple[tuple[Any, ...], int]:
    """Items in blocks; a negative count is followed by the block's size in bytes."""
    items: list[Any] = []
    while True:
        count, at = read_long(data, at)
        if count == 0:
            return tuple(items), at
        if count < 0:
            _, at = read_long(data, at)
        if abs(count) > len(data) - at:
            raise Malformed(f"Expected fewer items than bytes, but {count} are announced")
        for _ in range(abs(count)):
            item, at = read(data, at)
            items.append(item)
