"""Rules between the keys of policies that randomize columns, and of those that don't."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlanon.methods.randomization.policy import Randomize
from sqlanon.policy.algorithm_parameters import Recodes
from sqlanon.policy.attributes import Role
from sqlanon.policy.document import Path
from sqlanon.policy.grammar import Policy
from sqlanon.policy.unused import WithoutClasses
from sqlanon.support.suggest import did_you_mean

_PARTS = WithoutClasses(
    algorithm="randomize",
    model="randomization",
    release="a release with noise",
    file="two tables are released, the rows and what was added to them; export them afterwards.",
    url="write tables of the source's database; they can be copied afterwards.",
)


def randomization_of(policy: Policy) -> Randomize:
    """Return the algorithm of a policy that randomizes columns."""
    assert isinstance(policy.algorithm, Randomize)
    return policy.algorithm


def randomized_problems(policy: Policy, place: Callable[[Path], str]) -> Iterator[str]:
    """Say what does not go with the randomization of columns, or only with it.

    place: writes the path of a key for people.
    """
    yield from _PARTS.model_problems(policy, place)
    if policy.algorithm.recodes is Recodes.NOISE:
        yield from _PARTS.unused_problems(policy, place)
        yield from _column_problems(policy, place)


def _column_problems(policy: Policy, place: Callable[[Path], str]) -> Iterator[str]:
    columns = randomization_of(policy).columns
    for name in columns:
        path = place(("algorithm", "columns", name))
        attribute = policy.attributes.get(name)
        if attribute is None:
            yield f"{path}: it is not among the attributes; {did_you_mean(name, policy.attributes)}"
        elif attribute.role.leaves_out:
            yield f"{path}: it is left out of the release (role: {attribute.role.value}); leave it out here too."
    for name, attribute in policy.attributes.items():
        path = place(("attributes", name))
        if attribute.role is Role.QUASI_IDENTIFIER and name not in columns:
            yield (
                f"{path}: a quasi-identifier would be released as it is; randomize it (algorithm.columns), or say that"
                " nobody can be recognized by it (role: insensitive)."
            )
