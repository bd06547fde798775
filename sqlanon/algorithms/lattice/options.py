"""Options of a search beside the policy: levels, time, and to go on however large the lattice is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlanon.encoding.frequency.lattice import Lattice, Node
from sqlanon.errors import PolicyError
from sqlanon.policy import FullDomain, Optimal, Policy, Role
from sqlanon.support.suggest import did_you_mean, quoted

LARGEST = 100_000  # generalizations from which on these ask first: minutes on a small table, days on a large one
LARGEST_HELD = 5_000_000  # generalizations of which something is held in memory, some 50 bytes; of more, of boxes


@dataclass(frozen=True)
class SearchOptions:
    """Options of a search beside the policy, as a run gives them.

    levels: the generalization to release, by attribute, in place of a search.
    time_limit: seconds after which a search that can stop early does.
    any_size: search however large the lattice is.
    """

    levels: Mapping[str, int] | None = None
    time_limit: float | None = None
    any_size: bool = False

    def applied_to(self, policy: Policy) -> Policy:
        """Return the policy, with full-domain generalization as its algorithm if levels are given.

        Raises PolicyError where the options don't go together, or the algorithm can't follow them.
        """
        if self.time_limit is not None and self.levels is not None:
            raise PolicyError("--time-limit does not go with --levels: there is nothing to search.")
        if self.levels is not None:
            if wrong := list(_wrong_names(policy, self.levels)):
                raise PolicyError(wrong)
            return on_lattice(policy)
        if self.time_limit is not None and not policy.algorithm.stops_early:
            raise PolicyError(
                f"--time-limit: {policy.algorithm.name} has nothing to release before it is done; optimal can stop"
                " early."
            )
        return policy

    def refuse(self, policy: Policy) -> None:
        """Raise PolicyError for options that were given, as the policy's algorithm searches for nothing."""
        if given := [name for name, value in vars(self).items() if value is not None and value is not False]:
            raise PolicyError(
                f"{', '.join(given)} has no meaning for algorithm: {policy.algorithm.name}; leave it out."
            )


def full_domain(policy: Policy) -> FullDomain:
    """The policy's algorithm, which must be a search over the lattice."""
    assert isinstance(policy.algorithm, FullDomain)
    return policy.algorithm


def on_lattice(policy: Policy) -> Policy:
    """The policy, with `optimal` in place of an algorithm that is not a search over the lattice."""
    if isinstance(policy.algorithm, FullDomain):
        return policy
    return policy.model_copy(update={"algorithm": Optimal(name="optimal")})


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


def _wrong_names(policy: Policy, levels: Mapping[str, int]) -> Iterator[str]:
    names = [name for name, a in policy.attributes.items() if a.role is Role.QUASI_IDENTIFIER]
    for name in levels:
        if name not in names:
            yield f"--levels: '{name}' is not a quasi-identifier; {did_you_mean(name, names)}"
    missing = [name for name in names if name not in levels]
    if missing:
        yield f"--levels: every quasi-identifier needs a level; missing: {', '.join(quoted(missing))}."
