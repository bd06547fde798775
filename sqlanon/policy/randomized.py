"""Rules between the keys of policies that randomize columns, and of those that don't."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlanon.policy.attributes import Role
from sqlanon.policy.document import Path
from sqlanon.policy.grammar import Policy
from sqlanon.policy.noise_algorithms import Randomize
from sqlanon.policy.privacy import RandomizationParameters
from sqlanon.support.suggest import did_you_mean

_UNUSED = ("suppression", "remainder", "suppressed", "ranges", "subject", "budget")
_UNUSED_OF_COLUMNS = ("hierarchy", "show", "key", "order", "bottom", "top", "domain", "values", "sets")
_PLACES = {
    ("source", "file"): "columns of a file have the types that its rows look like; load it into a table first.",
    ("release", "file"): "two tables are released, the rows and what was added to them; export them afterwards.",
    ("release", "url"): "write tables of the source's database; they can be copied afterwards.",
}


def randomization_of(policy: Policy) -> Randomize:
    """Return the algorithm of a policy that randomizes columns."""
    assert isinstance(policy.algorithm, Randomize)
    return policy.algorithm


def randomized_problems(policy: Policy, place: Callable[[Path], str]) -> Iterator[str]:
    """Say what does not go with the randomization of columns, or only with it.

    place: writes the path of a key for people.
    """
    asked = any(isinstance(model, RandomizationParameters) for model in policy.privacy)
    if not policy.is_randomized:
        if asked:
            yield f"{place(('privacy',))}: randomization needs algorithm: randomize, not {policy.algorithm.name}."
        return
    if not asked or len(policy.privacy) > 1:
        yield (
            f"{place(('privacy',))}: randomize makes no classes for models to judge; ask for"
            " {model: randomization} alone."
        )
    for key in _UNUSED:
        if key in policy.model_fields_set:
            yield f"{place((key,))}: randomize does not use it; leave it out."
    for (part, key), reason in _PLACES.items():
        given = getattr(getattr(policy, part), key)
        if given is not None and not (key == "url" and given == policy.source.url):
            yield f"{place((part, key))}: {reason}"
    if policy.release.layout != "flat":
        yield f"{place(('release', 'layout'))}: a release with noise has no layout: star; leave it out."
    yield from _column_problems(policy, place)


def _column_problems(policy: Policy, place: Callable[[Path], str]) -> Iterator[str]:
    columns = randomization_of(policy).columns
    for name in columns:
        path = place(("algorithm", "columns", name))
        attribute = policy.attributes.get(name)
        if attribute is None:
            yield f"{path}: it is not among the attributes; {did_you_mean(name, policy.attributes)}"
        elif attribute.role is Role.IDENTIFIER:
            yield f"{path}: an identifier is left out, and has nothing to randomize; leave it out here."
    for name, attribute in policy.attributes.items():
        path = place(("attributes", name))
        yield from (
            f"{path}: randomize does not use {key}; leave it out."
            for key in _UNUSED_OF_COLUMNS
            if key in attribute.model_fields_set
        )
        if attribute.role is Role.QUASI_IDENTIFIER and name not in columns:
            yield (
                f"{path}: a quasi-identifier would be released as it is; randomize it (algorithm.columns), or say that"
                " nobody can be recognized by it (role: insensitive)."
            )
