"""Masking in the grammar of policies, and the rules between the keys of such a policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar, Literal

from sqlanon.policy.algorithm_parameters import AlgorithmParameters, Recodes
from sqlanon.policy.attributes import AttributeSection, Role
from sqlanon.policy.document import Path
from sqlanon.policy.grammar import Policy
from sqlanon.policy.unused import unused_keys
from sqlanon.support.suggest import any_of

_UNUSED_OF_COLUMNS = ("domain", "values")


class CopyWithMasks(AlgorithmParameters):
    """Copies every row of a table without quasi-identifiers: identifiers are masked or left out, all other columns stay
    as they are. No model judges the release, and nothing is searched. docs/masking.md says what that protects."""

    recodes: ClassVar[Recodes] = Recodes.ROWS
    takes_models: ClassVar[bool] = False
    sentence: ClassVar[str] = "Every row was copied: identifiers were masked or left out, all other columns kept."
    name: Literal["masking"]


def masking_problems(policy: Policy, place: Callable[[Path], str]) -> Iterator[str]:
    """Say what does not go with masking.

    place: writes the path of a key for people.
    """
    if not isinstance(policy.algorithm, CopyWithMasks):
        return
    if policy.privacy:
        yield (
            f"{place(('privacy',))}: masking makes no classes for models to judge; leave privacy out, or choose an"
            " algorithm that makes classes."
        )
    yield from unused_keys(policy, place)
    if policy.release.layout != "flat":
        yield f"{place(('release', 'layout'))}: layout: star is for releases of classes; leave it out."
    for name, attribute in policy.attributes.items():
        yield from _column_problems(attribute, place(("attributes", name)))
    for name, attribute in policy.attributes.items():
        person = attribute.person
        named = None if person is None else policy.attributes.get(person)
        if person is not None and (named is None or named.role is not Role.IDENTIFIER):
            identifiers = [one for one, its in policy.attributes.items() if its.role is Role.IDENTIFIER]
            offer = f"; choose {any_of(identifiers)}" if identifiers else ""
            yield f"{place(('attributes', name, 'person'))}: '{person}' is no attribute with role identifier{offer}."
    if all(attribute.is_omitted for attribute in policy.attributes.values()):
        yield f"{place(('attributes',))}: every column is left out, so that nothing would be released."


def _column_problems(attribute: AttributeSection, path: str) -> Iterator[str]:
    if attribute.role is Role.QUASI_IDENTIFIER:
        yield (
            f"{path}: a quasi-identifier would be released as it is, as masking generalizes nothing; choose an"
            " algorithm that makes classes, or say that nobody can be recognized by it (role: insensitive)."
        )
        return
    for key in _UNUSED_OF_COLUMNS:
        if key in attribute.model_fields_set:
            yield f"{path}: masking does not use {key}; leave it out."
    if attribute.nulls in ("value", "each"):
        yield f"{path}: masking does not use nulls: {attribute.nulls}; leave it out."
