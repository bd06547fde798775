"""Options of a search beside the policy: levels, time, and to go on however large the lattice is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlanon.errors import PolicyError
from sqlanon.policy import Policy, Recodes, Role
from sqlanon.policy.algorithms import parameters_of_algorithm
from sqlanon.support.suggest import did_you_mean, quoted

_ON_LATTICE = "optimal"  # the search of the lattice for policies that ask for another algorithm


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

    def refuse_repair(self) -> None:
        """Raise PolicyError where levels are given, which a repair would raise."""
        if self.levels is not None:
            raise PolicyError("--repair does not go with --levels: a repair releases other levels than these.")

    def refuse(self, policy: Policy) -> None:
        """Raise PolicyError for options that were given, as the policy's algorithm searches for nothing."""
        if given := [name for name, value in vars(self).items() if value is not None and value is not False]:
            raise PolicyError(
                f"{', '.join(given)} has no meaning for algorithm: {policy.algorithm.name}; leave it out."
            )


def on_lattice(policy: Policy) -> Policy:
    """Return the policy, with `optimal` in place of an algorithm that is not a search over the lattice.

    Raises PolicyError where the method of that search is not there.
    """
    if policy.algorithm.recodes is Recodes.LEVELS:
        return policy
    parameters = parameters_of_algorithm(_ON_LATTICE)
    if parameters is None:
        raise PolicyError(f"The lattice can't be searched: there is no algorithm '{_ON_LATTICE}'.")
    return policy.model_copy(update={"algorithm": parameters.model_validate({"name": _ON_LATTICE})})


def _wrong_names(policy: Policy, levels: Mapping[str, int]) -> Iterator[str]:
    names = [name for name, a in policy.attributes.items() if a.role is Role.QUASI_IDENTIFIER]
    for name in levels:
        if name not in names:
            yield f"--levels: '{name}' is not a quasi-identifier; {did_you_mean(name, names)}"
    missing = [name for name in names if name not in levels]
    if missing:
        yield f"--levels: every quasi-identifier needs a level; missing: {', '.join(quoted(missing))}."
