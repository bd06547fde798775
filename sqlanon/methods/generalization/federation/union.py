"""The union of the values of several sites, of which nobody learns who has which, or how many have one.

A value has a slot among many, by a digest of it. The sites find the slots that somebody uses; of each, whether all who
use it mean the same value; and if so the value, as the mean of what they share of it. The values of other slots are
looked for again by other digests, until none are left. Lists are padded to all slots, and values to one length.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence

import numpy as np

from sqlanon.errors import PolicyError, ProtectionError
from sqlanon.methods.generalization.federation.shares import PRIME, Numbers, Sharing, draw
from sqlanon.methods.generalization.federation.thresholds import Polynomial, Threshold

SLOTS = 2**16
MOST_VALUES = SLOTS // 8  # of a site, so that most of all sites' values have a slot of their own
MOST_BYTES = 240  # of a value
_BYTES = 3  # of a value in each number, which is below the prime
_NUMBERS = 1 + MOST_BYTES // _BYTES  # the length, and the value
_MOST_ROUNDS = 50
_MODULUS = np.uint64(PRIME)
_DOING = "while values were put together"


def require_fit(values: Collection[str], column: str) -> None:
    """Raise PolicyError for values that are too many or too long."""
    if len(values) > MOST_VALUES:
        raise PolicyError(
            f"Column '{column}' has {len(values):,} values that its hierarchy lacks, and {MOST_VALUES:,} of a site can"
            " be put together; is it the hierarchy of this column?"
        )
    if any(len(value.encode()) > MOST_BYTES for value in values):
        raise PolicyError(
            f"Column '{column}' has values of more than {MOST_BYTES} bytes that its hierarchy lacks; shorten them in a"
            " view."
        )


class Union:
    """A site's part in putting values together."""

    def __init__(self, sharing: Sharing) -> None:
        self._sharing = sharing
        self._used = Threshold(sharing, 1)
        self._inverse = Polynomial([0, *(pow(count, -1, PRIME) for count in range(1, sharing.sites + 1))])

    def of(self, own: Collection[str]) -> list[str]:
        """Open the values that any site has, in the order of their characters; every site passes its own."""
        opened: set[str] = set()
        for number in range(_MOST_ROUNDS):
            values, is_last = self._round(number, sorted(set(own) - opened))
            opened |= values
            if is_last:
                return sorted(opened)
        raise ProtectionError(f"The values did not come apart in {_MOST_ROUNDS} rounds. Please report this.")

    def _round(self, number: int, own: Sequence[str]) -> tuple[set[str], bool]:
        """Open the values that have a slot of their own; and whether all have."""
        mine = _Slots(number, own)
        slots = self._used.find_large(mine.used, _DOING)
        if not slots:
            return set(), True
        agreed = self._find_agreed(mine, slots)
        values = {value for value in self._values(mine, agreed) if value is not None}
        return values, len(values) == len(slots)

    def _find_agreed(self, mine: _Slots, slots: Sequence[int]) -> list[int]:
        """Open in which slots all sites mean one value: the variance of their marks is 0, and not at random."""
        used, marks, squares = self._share([mine.used[slots], mine.marks[slots], mine.squares[slots]])
        left, right = np.concatenate([used, marks]), np.concatenate([squares, marks])
        products = self._sharing.multiply(left, right, _DOING)
        variance = (products[: len(slots)] + _MODULUS - products[len(slots) :]) % _MODULUS
        factor = self._sharing.share_sum(draw(len(slots)), _DOING)
        opened = self._sharing.open(self._sharing.multiply(variance, factor, _DOING), _DOING)
        return [slot for slot, value in zip(slots, opened, strict=True) if value == 0]

    def _values(self, mine: _Slots, slots: Sequence[int]) -> list[str | None]:
        """Open the values of slots; None for one that is none, as where two values have the same mark."""
        if not slots:
            return []
        used, sums = self._share([mine.used[slots], np.concatenate([mine.numbers(slot) for slot in slots])])
        inverse = np.repeat(self._inverse.at(self._sharing, used, _DOING), _NUMBERS)
        opened = self._sharing.open(self._sharing.multiply(sums, inverse, _DOING), _DOING)
        return [mine.read(slot, numbers) for slot, numbers in zip(slots, opened.reshape(-1, _NUMBERS), strict=True)]

    def _share(self, own: Sequence[Numbers]) -> list[Numbers]:
        shares = self._sharing.share_sum(np.concatenate(own), _DOING)
        return np.split(shares, np.cumsum([len(one) for one in own])[:-1])


class _Slots:
    """A site's values in the slots of a round.

    used: 1 where it has a value; marks: another digest of it; squares: of the marks.
    """

    def __init__(self, number: int, values: Sequence[str]) -> None:
        self._round = number
        self._values: dict[int, str] = {}
        self.used, self.marks, self.squares = (np.zeros(SLOTS, np.uint64) for _ in range(3))
        for value in values:
            slot, mark = self._place(value)
            is_second = slot in self._values
            self._values[slot] = value
            self.used[slot], self.marks[slot] = 1, mark
            self.squares[slot] = draw(1)[0] if is_second else mark * mark % PRIME  # so that nobody agrees on two

    def _place(self, value: str) -> tuple[int, int]:
        digest = hashlib.sha256(f"{self._round} {value}".encode()).digest()
        return int.from_bytes(digest[:4], "big") % SLOTS, int.from_bytes(digest[4:12], "big") % PRIME

    def numbers(self, slot: int) -> Numbers:
        """The value of a slot as numbers: its length, its bytes, and zeros; zeros alone where the site has none."""
        if slot not in self._values:
            return np.zeros(_NUMBERS, np.uint64)
        data = self._values[slot].encode()
        padded = data.ljust(MOST_BYTES, b"\0")
        parts = [int.from_bytes(padded[start : start + _BYTES], "big") for start in range(0, MOST_BYTES, _BYTES)]
        return np.array([len(data), *parts], np.uint64)

    def read(self, slot: int, numbers: Numbers) -> str | None:
        """Read a value from numbers; None where they are none of this slot."""
        length, *parts = (int(number) for number in numbers)
        if length > MOST_BYTES or any(part >= 2 ** (8 * _BYTES) for part in parts):
            return None
        data = b"".join(part.to_bytes(_BYTES, "big") for part in parts)
        try:
            value = data[:length].decode()
        except UnicodeDecodeError:
            return None
        return value if self._place(value)[0] == slot and not any(data[length:]) else None
