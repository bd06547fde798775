"""The quality models by their names in the policy."""

from __future__ import annotations

from sqlanon.encoding.frequency.frequency_sets import FrequencySets
from sqlanon.encoding.frequency.lattice import Lattice
from sqlanon.errors import PolicyError
from sqlanon.methods.generalization.lattice.quality.class_quality import AverageClassSize, Discernibility, Divergence
from sqlanon.methods.generalization.lattice.quality.entropy import ArxEntropy, Entropy
from sqlanon.methods.generalization.lattice.quality.loss import LossQuality
from sqlanon.methods.generalization.lattice.quality.quality import Height, Precision, Quality
from sqlanon.methods.generalization.policy import FullDomain, quality_names
from sqlanon.policy.registry import Choice, describe_choices
from sqlanon.support.plugins import QUALITIES as PLUGINS
from sqlanon.support.plugins import load_plugin

QUALITIES: dict[str, type[Quality]] = {
    kind.name: kind
    for kind in (LossQuality, Precision, Discernibility, AverageClassSize, Entropy, ArxEntropy, Height, Divergence)
}
"""The program's own quality models by name."""


def quality_of(algorithm: FullDomain, sets: FrequencySets, lattice: Lattice) -> Quality:
    """Make the quality model that an algorithm asks for.

    Raises PolicyError where there is none of this name, or it can't be loaded.
    """
    return _class_of(algorithm.quality).build(algorithm, sets, lattice)


def describe_qualities() -> list[Choice]:
    """Describe all quality models, those of installed packages last.

    Raises PolicyError where one of them can't be loaded.
    """
    return describe_choices(PLUGINS, quality_names(), QUALITIES, _class_of)


def _class_of(name: str) -> type[Quality]:
    quality = QUALITIES.get(name) or load_plugin(PLUGINS, name, Quality)  # type: ignore[type-abstract]
    if quality is None:
        raise PolicyError(f"There is no quality model '{name}'; is the package that adds it installed?")
    return quality
