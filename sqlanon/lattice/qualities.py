"""The quality models by their names in the policy."""

from __future__ import annotations

from sqlanon.lattice.arx_entropy import ArxEntropy
from sqlanon.lattice.class_quality import AverageClassSize, Discernibility
from sqlanon.lattice.divergence import Divergence
from sqlanon.lattice.entropy import Entropy
from sqlanon.lattice.frequency import FrequencySets
from sqlanon.lattice.lattice import Lattice
from sqlanon.lattice.loss import Loss
from sqlanon.lattice.precision import Precision
from sqlanon.lattice.quality import Height, Quality
from sqlanon.policy import FullDomain

QUALITIES: dict[str, type[Quality]] = {
    kind.name: kind
    for kind in (Loss, Precision, Discernibility, AverageClassSize, Entropy, ArxEntropy, Height, Divergence)
}


def quality_of(algorithm: FullDomain, sets: FrequencySets, lattice: Lattice) -> Quality:
    """The quality model that an algorithm asks for."""
    return QUALITIES[algorithm.quality].build(algorithm, sets, lattice)
