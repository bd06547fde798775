"""The sources of releases and the checks of policies, by what a policy's algorithm releases, loaded when used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlanon.algorithms.lattice.options import SearchOptions
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.policy import Policy, Recodes
from sqlanon.runs.source import ReleaseSource
from sqlanon.support.own_parts import load_part

if TYPE_CHECKING:
    from sqlanon.methods.differential_privacy.check import PrivateCheck
    from sqlanon.methods.randomization.source import RandomizedCheck
    from sqlanon.methods.rule_hiding.source import HidingCheck


@dataclass(frozen=True)
class Family:
    """The names of the source and of the check of a family of algorithms, each as `module:name`."""

    source: str
    check: str


CLASSES = "sqlanon.runs.searching:Search"
"""The source of all releases that show classes of rows."""

WITHOUT_CLASSES = {
    Recodes.COUNTS: Family(
        "sqlanon.methods.differential_privacy.source:PrivateDraw",
        "sqlanon.methods.differential_privacy.check:check_private",
    ),
    Recodes.NOISE: Family(
        "sqlanon.methods.randomization.source:RandomDraw", "sqlanon.methods.randomization.source:check_randomized"
    ),
    Recodes.ITEMS: Family(
        "sqlanon.methods.rule_hiding.source:RuleHiding", "sqlanon.methods.rule_hiding.source:check_hiding"
    ),
}
"""The families of algorithms that search for no classes."""


def source_of(policy: Policy, options: SearchOptions) -> ReleaseSource[Any, Any]:
    """Make the source of a policy's release.

    Raises PolicyError for options of a search that the policy's algorithm can't follow, or that searches for nothing.
    """
    source: ReleaseSource[Any, Any]
    if policy.algorithm.recodes.makes_classes:
        source = load_part(CLASSES)(options.applied_to(policy).algorithm, options)
    else:
        options.refuse(policy)
        source = load_part(WITHOUT_CLASSES[policy.algorithm.recodes].source)(policy)
    return source


def check_without_classes(
    policy: Policy, options: EngineOptions | None = None
) -> PrivateCheck | RandomizedCheck | HidingCheck:
    """Check a policy of one of these families, and find why a run would be refused; nothing is changed.

    Raises PolicyError with every problem.
    """
    check = load_part(WITHOUT_CLASSES[policy.algorithm.recodes].check)
    checked: PrivateCheck | RandomizedCheck | HidingCheck = check(policy, options)
    return checked
