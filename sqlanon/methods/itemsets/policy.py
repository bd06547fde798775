"""Apriori-based anonymization of sets of items, and what a policy that asks for it must say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

from sqlanon.policy.algorithm_parameters import AlgorithmParameters, Recodes
from sqlanon.policy.attributes import AttributeSection, Hierarchy, Role, Show
from sqlanon.policy.document import Path

if TYPE_CHECKING:
    from sqlanon.policy import Policy

MODELS = ("k-anonymity", "km-anonymity")


class Apriori(AlgorithmParameters):
    """Generalizes the items of persons along a hierarchy until any m items are those of k persons, size of set by size;
    a person shows a group once, however many items of it are theirs. Rare items are left out where that costs less."""

    sentence: ClassVar[str] = (
        "Sets of one item, then of two, and so on were counted. Where too few persons had a set, the item of it that"
        " lost least gave way to the group above, or was left out; in the end every group was divided again that could"
        " be. A person shows a group once."
    )
    recodes: ClassVar[Recodes] = Recodes.CUTS
    joins_rows: ClassVar[bool] = True
    merges_rows: ClassVar[bool] = True
    name: Literal["apriori"]

    @property
    def leaves_rules(self) -> bool:
        return False

    @property
    def suppresses(self) -> bool:
        return True

    @property
    def needs_hierarchies(self) -> bool:
        return False

    def hierarchy_of(self, attribute: AttributeSection) -> Hierarchy | None:
        if attribute.role is not Role.QUASI_IDENTIFIER:
            return attribute.hierarchy
        return attribute.hierarchy or Hierarchy(suppress=True)

    def quasi_problems(self, attribute: AttributeSection) -> Iterator[str]:
        if attribute.show is not Show.LABEL:
            yield f"{self.name} shows items and their groups as texts; leave show out."


def itemset_problems(policy: Policy, place: Callable[[Path], str]) -> Iterator[str]:
    """Say what does not go with sets of items.

    place: writes the path of a key for people.
    """
    if not isinstance(policy.algorithm, Apriori):
        return
    name = policy.algorithm.name
    if policy.person is None:
        yield f"subject: {name} counts the persons who have items: name the column that tells them apart."
    for number, model in enumerate(policy.privacy):
        if model.model not in MODELS:
            yield (
                f"{place(('privacy', number))}: {name} counts the persons of sets of items, and does not judge"
                f" {model.model}; ask for km-anonymity, or choose another algorithm."
            )
    if policy.stars:
        yield f"{place(('suppressed',))}: items that are left out would be shown as items `*`; write suppressed: omit."
    yield from _attribute_problems(policy, place)


def _attribute_problems(policy: Policy, place: Callable[[Path], str]) -> Iterator[str]:
    name = policy.algorithm.name
    items = [key for key, one in policy.attributes.items() if one.role is Role.QUASI_IDENTIFIER]
    if len(items) != 1:
        yield (
            f"{place(('attributes',))}: {name} takes one quasi-identifier, the items, and there are {len(items)}; make"
            " one column of several in a view, or leave the others out (role: omit)."
        )
    for key, attribute in policy.attributes.items():
        if key != policy.person and not attribute.is_omitted and attribute.role is not Role.QUASI_IDENTIFIER:
            yield (
                f"{place(('attributes', key))}: several items of a person become one row, which has one value of no"
                " other column; leave it out (role: omit)."
            )
