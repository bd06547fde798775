"""The lattice that a policy allows, and whether its search can be afforded."""

from __future__ import annotations

from collections.abc import Mapping

from sqlanon.algorithms.search_options import SearchOptions
from sqlanon.encoding.frequency.lattice import Lattice, Node
from sqlanon.errors import PolicyError
from sqlanon.methods.generalization.policy import FullDomain
from sqlanon.policy import Policy

LARGEST = 100_000  # generalizations from which on these ask first: minutes on a small table, days on a large one
LARGEST_HELD = 5_000_000  # generalizations of which something is held in memory, some 50 bytes; of more, of boxes


def full_domain(policy: Policy) -> FullDomain:
    """The policy's algorithm, which must be a search over the lattice."""
    assert isinstance(policy.algorithm, FullDomain)
    return policy.algorithm


def lattice_within(algorithm: FullDomain, heights: Mapping[str, int]) -> Lattice:
    """Lay out the lattice of hierarchies, by their topmost levels, within the limits of the policy.

    Raises PolicyError for limits beyond a hierarchy.
    """
    if beyond := list(algorithm.limit_problems(heights)):
        raise PolicyError(beyond)
    limits = [algorithm.limits.get(name, (0, height)) for name, height in heights.items()]
    bottom, top = tuple(low for low, _ in limits), tuple(high for _, high in limits)
    return Lattice(tuple(heights), tuple(heights.values()), bottom, top)


def require_affordable(lattice: Lattice, policy: Policy, search_options: SearchOptions) -> None:
    """Raise PolicyError if the policy's search of a lattice may not end, unless the options let it go on or stop it."""
    algorithm = full_domain(policy)
    if search_options.levels is None and algorithm.exhaustive:
        require_size(lattice, algorithm.name, search_options.any_size)
    if search_options.levels is None and algorithm.stops_early:
        require_end(lattice, algorithm.name, search_options)
    if policy.remainder == "recode":  # which searches what is above the first pass as `optimal` does
        require_end(lattice, "remainder: recode", search_options)


def require_size(lattice: Lattice, what: str, any_size: bool) -> None:
    """Raise PolicyError if `what`, which looks at every generalization, would have to look at very many."""
    if lattice.size > LARGEST and not any_size:
        raise _too_large(
            lattice,
            f"{what} may have to look at every one of them; more than {LARGEST:,} can take very long. "
            "Of the algorithms, optimal and datafly look at few.",
        )


def require_end(lattice: Lattice, what: str, search_options: SearchOptions) -> None:
    """Raise PolicyError if `what` would go best first, which may not end in any time, without a limit of time."""
    if lattice.size > LARGEST_HELD and search_options.time_limit is None and not search_options.any_size:
        raise _too_large(
            lattice,
            f"of more than {LARGEST_HELD:,} {what} may not find the best in days. With --time-limit SECONDS it takes"
            " the best that it has found by then, and says how much better another one can be. The algorithm datafly"
            " takes the first that it comes to.",
        )


def _too_large(lattice: Lattice, why: str) -> PolicyError:
    return PolicyError(
        f"The lattice has {lattice.size:,} generalizations, and {why} "
        "Coarser hierarchies and algorithm.limits make the lattice smaller; --any-size searches it all the same."
    )


def node_of(lattice: Lattice, levels: Mapping[str, int]) -> Node:
    """The generalization with these levels; raises PolicyError for one that an attribute can't have."""
    wrong = [
        f"--levels: '{name}' can be at levels {low} to {high}, not at {levels[name]}."
        for name, low, high in zip(lattice.names, lattice.bottom, lattice.top, strict=True)
        if not low <= levels[name] <= high
    ]
    if wrong:
        raise PolicyError(wrong)
    return tuple(levels[name] for name in lattice.names)
