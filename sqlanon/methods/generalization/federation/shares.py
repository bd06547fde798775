"""Numbers that no site sees: each site has a share of them, and computes with shares, until something is opened.

A number is split into the values, at a place for each site, of a polynomial drawn at random whose value at 0 is the
number (Shamir, Communications of the ACM 22(11), 1979), of a degree below half of the sites. Shares are added and
multiplied by public numbers where they are; shares of a product are made by splitting the products of shares again
(Gennaro, Rabin, Rabin, PODC 1998, section 3). All numbers are modulo a prime.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sqlanon.errors import AccessError
from sqlanon.methods.generalization.federation.party import Party

PRIME = 2**31 - 1  # so that products fit into 64 bits
Numbers = NDArray[np.uint64]
"""Numbers modulo the prime, or shares of them."""
_MODULUS = np.uint64(PRIME)


class Sharing:
    """A site's part in computing with shares.

    degree: of the polynomials; so many sites that put together what they were sent learn nothing.
    """

    def __init__(self, party: Party) -> None:
        self.party = party
        self.sites = len(party.plan.sites)
        self.degree = (self.sites - 1) // 2
        places = range(1, self.sites + 1)
        self._weights = [_weight(0, place, places) for place in places]
        few = places[: self.degree + 1]  # which determine a polynomial, and so the shares at all other places
        self._others = {place: [_weight(place, one, few) for one in few] for place in places[self.degree + 1 :]}

    def share_sum(self, own: Numbers, doing: str) -> Numbers:
        """Share the sums, over the sites, of numbers that none shows; every site passes as many."""
        return np.asarray(np.sum(self.share_each(own, doing), axis=0, dtype=np.uint64)) % _MODULUS

    def share_each(self, own: Numbers, doing: str) -> list[Numbers]:
        """Share the numbers of each site, in the order of the plan; every site passes as many."""
        return self._send(self._split(own % _MODULUS), doing)

    def multiply(self, left: Numbers, right: Numbers, doing: str) -> Numbers:
        """Share the products of numbers of which this site has shares."""
        return _combine(self._weights, self._send(self._split(left * right % _MODULUS), doing))

    def open(self, shares: Numbers, doing: str) -> Numbers:
        """Show all sites the numbers of which each has shares.

        Raises AccessError where the shares are not of one polynomial, as where a site sends others than it computed.
        """
        received = self._send([shares] * self.sites, doing)
        for place, weights in self._others.items():
            if (_combine(weights, received) != received[place - 1]).any():
                raise AccessError(
                    f"The shares that the sites sent do not belong together {doing}; nothing was published. A site is"
                    " out of step, or does not run the program as it is."
                )
        return _combine(self._weights, received)

    def _split(self, numbers: Numbers) -> list[Numbers]:
        """Split numbers into a share for each site."""
        drawn = [draw(len(numbers)) for _ in range(self.degree)]
        return [self._value_at(np.uint64(place), [numbers, *drawn]) for place in range(1, self.sites + 1)]

    def _value_at(self, place: np.uint64, coefficients: list[Numbers]) -> Numbers:
        *lower, value = coefficients
        for coefficient in reversed(lower):
            value = (value * place + coefficient) % _MODULUS
        return value

    def _send(self, numbers: list[Numbers], doing: str) -> list[Numbers]:
        """Send each site its numbers; returns those of all sites, as many."""
        length = len(numbers[0])
        received = self.party.exchange([part.astype("<u4").tobytes() for part in numbers], 4 * length, doing)
        read = [np.frombuffer(data, "<u4").astype(np.uint64) for data in received]
        for values, name in zip(read, self.party.plan.names, strict=True):
            if (values >= _MODULUS).any():
                raise AccessError(f"Site '{name}' sent numbers that are no shares; nothing was published.")
        return read


def draw(number: int) -> Numbers:
    """Draw numbers modulo the prime, each as likely, from the operating system's randomness."""
    drawn = np.frombuffer(os.urandom(4 * number), "<u4").astype(np.uint64) & np.uint64(2**31 - 1)
    (again,) = np.nonzero(drawn == _MODULUS)
    if len(again):
        drawn[again] = draw(len(again))
    return drawn


def _combine(weights: Sequence[int], received: Sequence[Numbers]) -> Numbers:
    """Add up the shares of sites, of which there may be more than weights, each times its weight."""
    result = np.zeros(len(received[0]), np.uint64)
    for weight, values in zip(weights, received, strict=False):
        result = (result + np.uint64(weight) * values) % _MODULUS
    return result


def _weight(at: int, place: int, places: Sequence[int]) -> int:
    """The weight of a place in the value, at another one, of a polynomial of a degree below the number of places."""
    result = 1
    for other in places:
        if other != place:
            result = result * (at - other) * pow(place - other, -1, PRIME) % PRIME
    return result
