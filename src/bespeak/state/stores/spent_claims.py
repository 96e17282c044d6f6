"""Claims whose results are no longer kept, in few bytes each: a process remembers a million of them."""

from typing import NamedTuple

from bespeak.state.stores.store import DIGEST_BYTES

KEY_BYTES = 16
_SHARE_BYTES = 2
_REQUEST = KEY_BYTES + DIGEST_BYTES
_SHARE = _REQUEST + DIGEST_BYTES
_RECORD = _SHARE + _SHARE_BYTES


class Spent(NamedTuple):
    """One claim: digests of its answers and its request, and the share it counts for."""

    answers: bytes
    request: bytes
    share: int


class SpentClaims:
    """Records of fixed size by their keys, packed into many short arrays, each searched by C code.

    A dict of objects would take several times the memory. Keys must be evenly spread, as digests are.
    """

    def __init__(self) -> None:
        self._buckets: dict[int, bytearray] = {}
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def add(self, key: bytes, spent: Spent) -> None:
        """Add a claim that is not there yet."""
        record = key + spent.answers + spent.request + spent.share.to_bytes(_SHARE_BYTES, "big")
        number = _bucket(key)
        bucket = self._buckets.get(number)
        if bucket is None:
            self._buckets[number] = bytearray(record)
        else:
            bucket += record
        self._length += 1

    def get(self, key: bytes) -> Spent | None:
        """Return a claim by its key; `None` if there is none."""
        bucket = self._buckets.get(_bucket(key))
        place = _place(bucket, key)
        if bucket is None or place < 0:
            return None
        return Spent(
            bytes(bucket[place + KEY_BYTES : place + _REQUEST]),
            bytes(bucket[place + _REQUEST : place + _SHARE]),
            int.from_bytes(bucket[place + _SHARE : place + _RECORD], "big"),
        )

    def pop(self, key: bytes) -> Spent | None:
        """Remove a claim, and return it; `None` if there is none."""
        spent = self.get(key)
        if spent is not None:
            number = _bucket(key)
            bucket = self._buckets[number]
            place = _place(bucket, key)
            del bucket[place : place + _RECORD]
            if not bucket:
                del self._buckets[number]
            self._length -= 1
        return spent


def _bucket(key: bytes) -> int:
    """Which of 4,096 arrays a key belongs to."""
    return key[0] << 4 | key[1] >> 4


def _place(bucket: bytearray | None, key: bytes) -> int:
    """Where a record begins; -1 if it is not there."""
    if bucket is None:
        return -1
    place = bucket.find(key)
    while place > 0 and place % _RECORD:  # the bytes of a key may also stand across fields
        place = bucket.find(key, place + 1)
    return place
