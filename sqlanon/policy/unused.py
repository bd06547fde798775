"""Parts of policies that have no meaning where a table is released without classes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from sqlanon.policy.attributes import AttributeSection, Role
from sqlanon.policy.document import Path
from sqlanon.policy.grammar import Policy

_UNUSED = ("suppression", "remainder", "suppressed", "ranges", "subject", "people", "history", "budget")
_UNUSED_OF_COLUMNS = ("hierarchy", "show", "key", "order", "bottom", "top", "domain", "values", "sets", "as_")


@dataclass(frozen=True)
class WithoutClasses:
    """The words of an algorithm that makes no classes for the parts that it does not use.

    model: that it goes with alone. release: of such a release in a sentence.
    file, url: why a release is no file, and in no other database.
    """

    algorithm: str
    model: str
    release: str
    file: str
    url: str

    def model_problems(self, policy: Policy, place: Callable[[Path], str]) -> Iterator[str]:
        """Refuse the model without its algorithm, and the algorithm without its model or with another one."""
        models = [model.model for model in policy.privacy]
        if policy.algorithm.name != self.algorithm:
            if self.model in models:
                name = policy.algorithm.name
                yield f"{place(('privacy',))}: {self.model} needs algorithm: {self.algorithm}, not {name}."
        elif models != [self.model]:
            yield (
                f"{place(('privacy',))}: {self.algorithm} makes no classes for models to judge; ask for"
                f" {{model: {self.model}}} alone."
            )

    def unused_problems(self, policy: Policy, place: Callable[[Path], str]) -> Iterator[str]:
        """Refuse the keys that the algorithm does not use."""
        yield from unused_keys(policy, place)
        if policy.source.file is not None:
            yield (
                f"{place(('source', 'file'))}: columns of a file have the types that its rows look like; load it into a"
                " table first."
            )
        if policy.release.file is not None:
            yield f"{place(('release', 'file'))}: {self.file}"
        if policy.release.url is not None and policy.release.url != policy.source.url:
            yield f"{place(('release', 'url'))}: {self.url}"
        if policy.release.layout != "flat":
            yield f"{place(('release', 'layout'))}: {self.release} has no layout: star; leave it out."
        for name, attribute in policy.attributes.items():
            for key in _unused_of(attribute):
                yield f"{place(('attributes', name))}: {self.algorithm} does not use {key}; leave it out."


def unused_keys(policy: Policy, place: Callable[[Path], str], but: Collection[str] = ()) -> Iterator[str]:
    """Refuse the keys of a policy that have no meaning without classes; but: those that the algorithm uses."""
    for key in _UNUSED:
        if key in policy.model_fields_set and key not in but:
            yield f"{place((key,))}: {policy.algorithm.name} does not use it; leave it out."


def _unused_of(attribute: AttributeSection) -> Iterator[str]:
    """List the keys that are given and not used; a sensitive column has `nulls` as it is read, given or not."""
    yield from (key.rstrip("_") for key in _UNUSED_OF_COLUMNS if key in attribute.model_fields_set)
    if attribute.nulls != ("nothing" if attribute.role is Role.SENSITIVE else "allow"):
        yield "nulls"
