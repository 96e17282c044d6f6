"""Claims whose results are no longer kept, in few bytes each: a process remembers a million of them."""

from array import array
from typing import NamedTuple

from bespeak.state.stores.store import DIGEST_BYTES, KEY_BYTES

_SHARE_BYTES = 2
_REQUEST = KEY_BYTES + DIGEST_BYTES
_SHARE = _REQUEST + DIGEST_BYTES
_RECORD = _SHARE + _SHARE_BYTES
_ARRAY = 15
"""Records of one array: as many as fit into the 512 bytes up to which Python manages memory itself."""
_BUCKETS = 4096


class Spent(NamedTuple):
    """One claim: digests of its answers and its request, and the share it counts for."""

    answers: bytes
    request: bytes
    share: int


class SpentClaims:
    """Records of fixed size by their keys, packed into many short arrays, each searched by C code.

    A dict of objects would take several times the memory. Keys must be evenly spread, as digests are. An array never grows, so
    that nothing is moved and no gaps are left in memory: a bucket that is full gets another array.
    """

    def __init__(self) -> None:
        self._buckets: dict[int, list[bytearray]] = {}
        self._sizes = array("I", [0]) * _BUCKETS
        """How many records each bucket has."""
        self.count = 0

    def __len__(self) -> int:
        return self.count

    def add(self, key: bytes, spent: Spent) -> None:
        """Add a claim that is not there yet."""
        number = _bucket(key)
        place = self._sizes[number] % _ARRAY * _RECORD
        arrays = self._buckets.setdefault(number, [])
        if not place:
            arrays.append(bytearray(_ARRAY * _RECORD))
        record = key + spent.answers + spent.request + spent.share.to_bytes(_SHARE_BYTES, "big")
        arrays[-1][place : place + _RECORD] = record
        self._sizes[number] += 1
        self.count += 1

    def get(self, key: bytes) -> Spent | None:
        """Return a claim by its key; `None` if there is none."""
        found = self._find(key)
        return _read(*found) if found is not None else None

    def pop(self, key: bytes) -> Spent | None:
        """Remove a claim, and return it; `None` if there is none."""
        found = self._find(key)
        if found is None:
            return None
        there, place = found
        spent = _read(there, place)
        number = _bucket(key)
        arrays = self._buckets[number]
        self._sizes[number] -= 1
        self.count -= 1
        # The last record takes its place.
        end = self._sizes[number] % _ARRAY * _RECORD
        there[place : place + _RECORD] = arrays[-1][end : end + _RECORD]
        if not end:
            arrays.pop()
        if not arrays:
            del self._buckets[number]
        return spent

    def _find(self, key: bytes) -> tuple[bytearray, int] | None:
        """The array of a record, and where the record begins."""
        number = _bucket(key)
        left = self._sizes[number] * _RECORD
        for one in self._buckets.get(number, ()):
            place = one.find(key, 0, left)
            while place > 0 and place % _RECORD:  # the bytes of a key may also stand across fields
                place = one.find(key, place + 1, left)
            if place >= 0:
                return one, place
            left -= len(one)
        return None


def _read(one: bytearray, place: int) -> Spent:
    return Spent(
        bytes(one[place + KEY_BYTES : place + _REQUEST]),
        bytes(one[place + _REQUEST : place + _SHARE]),
        int.from_bytes(one[place + _SHARE : place + _RECORD], "big"),
    )


def _bucket(key: bytes) -> int:
    return key[0] << 4 | key[1] >> 4
