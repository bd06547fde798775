"""Repairs: what a policy must be, so that classes of its release can be merged for the sake of earlier releases."""

from __future__ import annotations

from collections.abc import Iterator

from sqlanon.errors import PolicyError
from sqlanon.policy import Policy, Recodes

UNMERGED = (
    "makes no classes that can be merged along a tree or a lattice of levels; leave --repair out, or choose mondrian,"
    " rothko-t or a search for levels."
)


def require_repairable(policy: Policy) -> None:
    """Raise PolicyError where no account says what to repair, or the classes of the algorithm can't be merged."""
    if problems := list(_problems(policy)):
        raise PolicyError(problems)


def _problems(policy: Policy) -> Iterator[str]:
    algorithm = policy.algorithm
    if not policy.history.is_kept:
        yield (
            "--repair: no account says which releases are out already; write history: {mode: refresh}, increments or"
            " watch, or leave --repair out."
        )
    if algorithm.holds_sets or algorithm.recodes not in (Recodes.REGIONS, Recodes.LEVELS):
        yield f"--repair: {algorithm.name} {UNMERGED}"
    elif algorithm.regions_overlap:
        yield "--repair: regions of partitioning: relaxed are no nodes of a tree; write strict, or leave --repair out."
    if algorithm.recodes is Recodes.LEVELS and policy.remainder == "recode":
        yield (
            "--repair: with remainder: recode, classes of several levels stand beside each other; write suppress, or"
            " leave --repair out."
        )
