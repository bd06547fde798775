"""The mechanisms of differential privacy: the only place where their noise is drawn, by secret keys.

Both are those of OpenDP over whole numbers: the discrete Laplace mechanism (`make_laplace`), and the choice of the
greatest of noisy scores (`make_noisy_max`; McKenna, Sheldon, NeurIPS 2020). It has no seed. Its features `contrib` are
enabled: these constructors' proofs are reviewed, and their code is not yet. It can't draw the noise of empty cells just
where that is large (`make_laplace_threshold` is for keys that are not public, and promises less): `exact_draws` does,
from the same distribution.
"""

from __future__ import annotations

import importlib
import math
import secrets
from collections.abc import Iterable, Sequence
from fractions import Fraction
from importlib.metadata import version
from typing import Any, Protocol

import numpy as np

from sqlanon.errors import PolicyError
from sqlanon.mechanisms.charges import CHOICE, NOISE
from sqlanon.mechanisms.exact_draws import Draws, Noise, reaching
from sqlanon.sql import RedactedValue

_SEED_BITS = 128


_PARTS = ("measurements", "domains", "metrics", "measures", "mod")  # without its prelude, which loads all of sklearn


KEY_BYTES = 16  # as many as a digest has; with a row's number they fill one block, and longer keys are no stronger


class Mechanisms(Protocol):
    """Random draws, as a run asks for them; tests record and replay them.

    library: its name and version, for the record.
    """

    @property
    def library(self) -> str: ...

    def draw_key(self) -> RedactedValue:
        """Draw the key by which the rows of a person that count are chosen."""

    def random_numbers(self) -> np.random.Generator:
        """Return random numbers that protect nothing: what they divide was drawn with noise, and may be known."""

    def add_noise(self, counts: Sequence[int], epsilon: Fraction, sensitivity: int) -> list[int]:
        """Add noise to counts whose sum of changes is at most the sensitivity when a unit is added or removed."""

    def add_noise_to_many(self, counts: Draws, epsilon: Fraction, sensitivity: int) -> Draws:
        """Add noise as `add_noise` does, by the sampler of `reach`, which draws for all counts at once."""

    def reach(self, threshold: int, cells: int, epsilon: Fraction, sensitivity: int) -> Iterable[tuple[int, int]]:
        """Add noise to the counts of empty cells; return the places and values of those that reach the threshold."""

    def choose(self, scores: Sequence[int], epsilon: Fraction, sensitivity: int, *, monotone: bool) -> int:
        """Choose a score, likely a great one, and return its place.

        sensitivity: the most by which any score changes when a unit is added or removed.
        monotone: whether all change in the same direction then, so that half of the noise is enough.
        """


class OpenDP:
    """The mechanisms of the library OpenDP."""

    def __init__(self) -> None:
        """Load the library; raises PolicyError where it is not installed."""
        try:
            self._measurements, self._domains, self._metrics, self._measures, features = (
                importlib.import_module(f"opendp.{name}") for name in _PARTS
            )
        except ImportError:
            raise PolicyError(
                "Differential privacy draws its noise by OpenDP, which is not installed: pip install 'sqlanon[dp]'."
            ) from None
        features.enable_features("contrib")
        self._made: dict[tuple[str, Fraction, int, bool], tuple[Any, Fraction]] = {}

    @property
    def library(self) -> str:
        return f"opendp {version('opendp')}"

    def draw_key(self) -> RedactedValue:
        return secret_key()

    def random_numbers(self) -> np.random.Generator:
        return np.random.default_rng(secrets.randbits(_SEED_BITS))

    def add_noise(self, counts: Sequence[int], epsilon: Fraction, sensitivity: int) -> list[int]:
        return [int(count) for count in self._laplace(epsilon, sensitivity)[0](list(counts))]

    def add_noise_to_many(self, counts: Draws, epsilon: Fraction, sensitivity: int) -> Draws:
        _, scale = self._laplace(epsilon, sensitivity)
        return counts + Noise(scale).draw(len(counts))

    def reach(self, threshold: int, cells: int, epsilon: Fraction, sensitivity: int) -> Iterable[tuple[int, int]]:
        _, scale = self._laplace(epsilon, sensitivity)
        return reaching(Noise(scale), threshold, cells)

    def choose(self, scores: Sequence[int], epsilon: Fraction, sensitivity: int, *, monotone: bool) -> int:
        return int(self._noisy_max(epsilon, sensitivity, monotone)[0](list(scores)))

    def _laplace(self, epsilon: Fraction, sensitivity: int) -> tuple[Any, Fraction]:
        """Make the discrete Laplace mechanism, once for all draws of a share: that takes longer than a draw."""
        key = (NOISE, epsilon, sensitivity, False)
        if key not in self._made:
            self._made[key] = self._make_laplace(epsilon, sensitivity)
        return self._made[key]

    def _noisy_max(self, epsilon: Fraction, sensitivity: int, monotone: bool) -> tuple[Any, Fraction]:
        """Make the choice of a greatest noisy score, once for all draws of a share."""
        key = (CHOICE, epsilon, sensitivity, monotone)
        if key not in self._made:
            self._made[key] = self._make_noisy_max(epsilon, sensitivity, monotone)
        return self._made[key]

    def _make_laplace(self, epsilon: Fraction, sensitivity: int) -> tuple[Any, Fraction]:
        space = self._numbers, self._metrics.l1_distance(T="i64")
        make = self._measurements.make_laplace
        return _measurement(lambda scale: make(*space, scale), epsilon, sensitivity, sensitivity / epsilon)

    def _make_noisy_max(self, epsilon: Fraction, sensitivity: int, monotone: bool) -> tuple[Any, Fraction]:
        space = self._numbers, self._metrics.linf_distance(T="i64", monotonic=monotone)
        make, measure = self._measurements.make_noisy_max, self._measures.max_divergence()
        scale = (1 if monotone else 2) * sensitivity / epsilon
        return _measurement(lambda wide: make(*space, measure, wide), epsilon, sensitivity, scale)

    @property
    def _numbers(self) -> Any:
        """Lists of whole numbers."""
        return self._domains.vector_domain(self._domains.atom_domain(T="i64"))


def _measurement(make: Any, epsilon: Fraction, sensitivity: int, scale: Fraction) -> tuple[Any, Fraction]:
    """Make a measurement that costs no more than its share by the library's own account, which rounds up.

    Returns its scale, too, which is a double.
    """
    wide = float(scale)
    for _ in range(_MOST_STEPS):
        measurement = make(wide)
        if Fraction(measurement.map(sensitivity)) <= epsilon:
            return measurement, Fraction(wide)
        wide = math.nextafter(wide, math.inf)
    raise AssertionError("The library's account of a mechanism is far from its scale.")


_MOST_STEPS = 64  # between neighbouring doubles


def secret_key() -> RedactedValue:
    """Draw a key from the randomness of the operating system; no record and no log holds it."""
    return RedactedValue(secrets.token_hex(KEY_BYTES))
