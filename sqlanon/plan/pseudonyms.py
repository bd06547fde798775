"""Identifiers that a release shows by masks, such as pseudonyms: what may be one, the key, and what a mask tells."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from sqlanon.engines.columns import Column, Kind
from sqlanon.engines.dialects import Dialect
from sqlanon.errors import PolicyError
from sqlanon.plan.subject import PlanSubject
from sqlanon.policy import AttributeSection, Policy, Show
from sqlanon.policy.document import path_text
from sqlanon.policy.keys import DrawnKey, place_of_key, read_key
from sqlanon.work.publish.release_files import PARQUET


def pseudonymous(policy: Policy) -> list[str]:
    """List the identifiers that the release shows by masks."""
    return [name for name, attribute in policy.attributes.items() if attribute.show.is_mask]


def refuse_pseudonyms(policy: Policy, doer: str) -> None:
    """Raise PolicyError where a release shows masks, which `doer`, the subject of a sentence, doesn't make."""
    if names := pseudonymous(policy):
        attribute = policy.attributes[names[0]]
        raise PolicyError(f"{_place(names[0])}: {doer} makes no {_PLURALS.get(attribute.show, attribute.show + 's')}.")


_PLURALS = {Show.FAKED: "faked values", Show.NULL: "NULLs"}


def shown_column(dialect: type[Dialect], column: Column, attribute: AttributeSection) -> Column:
    """Describe the column of a release that shows an identifier: text or bytes, a whole number for a surrogate.

    One that is NULL has the type of the source's column, where its values have a text.
    """
    name = column.name
    if attribute.show is Show.NULL and column.kind is not Kind.OTHER:
        return replace(column, name=name)
    if attribute.show is Show.SURROGATE:
        return Column(name, dialect.types["int64"], Kind.INTEGER, True)
    if attribute.form == "bytes":
        return Column(name, dialect.types["bytes"], Kind.OTHER, True)
    return Column(name, dialect.types["text"], Kind.TEXT, True)


def pseudonym_problems(subject: PlanSubject) -> Iterator[str]:
    """List the reasons why identifiers can't be shown."""
    for column, attribute in subject.attributes:
        if not attribute.show.is_mask:
            continue
        place, algorithm = _place(column.name), subject.policy.algorithm
        if not subject.dialect.makes_pseudonyms:
            yield f"{place}: show: {subject.dialect.makes_pseudonyms.lacking}"
        if attribute.form == "bytes" and _is_text_file(subject.policy.release.file):
            yield f"{place}: form: bytes: a CSV file holds texts alone; write a .parquet file, or leave form out."
        if column.kind is Kind.OTHER and attribute.show not in (Show.CONSTANT, Show.NULL):
            yield (
                f"{place}: values of type {column.type} have no text that is the same everywhere, of which a"
                f" {attribute.show.value} could be made; {subject.recast}."
            )
        if attribute.show is Show.FAKED and importlib.util.find_spec("faker") is None:
            yield f"{place}: show: faked needs the word lists of Faker: pip install 'sqlanon[faked]'."
        if attribute.show is Show.MASK and column.kind is not Kind.TEXT:
            yield f"{place}: show: mask is for texts, and the column is {column.type}; {subject.recast}."
        if algorithm.releases_clusters or algorithm.draws_numbers:
            yield f"{place}: {algorithm.name} releases no row of anybody, which a {attribute.show.value} could be of."


def key_problems(policy: Policy) -> Iterator[str]:
    """List the keys that are missing, too short, or readable by others."""
    for name, attribute in policy.attributes.items():
        if attribute.key is not None:
            try:
                read_key(attribute.key)
            except PolicyError as error:
                yield f"{_place(name)}: key: {error}"


def pseudonym_warnings(policy: Policy, repeating: Sequence[str]) -> Iterator[str]:
    """Say what readers can link by the pseudonyms of a release.

    repeating: the identifiers that have several rows of one value.
    """
    for name, attribute in policy.attributes.items():
        if not attribute.show.is_mask:
            continue
        yield f"{_place(name)}: {_linked(attribute, name in repeating)}"


def _linked(attribute: AttributeSection, repeats: bool) -> str:
    rows = (
        " Rows of one value show the same, so that who knows several rows of a person may tell the person by what they"
        " have in common."
        if repeats
        else ""
    )
    if attribute.show is Show.NULL or attribute.show is Show.CONSTANT:
        return (
            "it shows nothing of an identifier but whether there is one."
            if attribute.constant is not None
            else ("it is NULL in every row.")
        )
    if attribute.show is Show.MASK:
        return (
            f"its masks show {attribute.first} characters at the beginning and {attribute.last} at the end of each"
            " value, and how long it is: whoever knows a value may find its rows, and few values may fit a mask."
        )
    if attribute.show is Show.FAKED:
        return (
            f"its faked values are made by {_key(attribute)}; several identifiers may show the same, and a name may be"
            f" that of somebody else. Releases by one key can be joined by them.{rows}"
        )
    if attribute.key is None:
        return f"its surrogates are drawn anew by every run, and link nothing to other releases.{rows}"
    if isinstance(attribute.key, DrawnKey):
        return f"its pseudonyms are made by a key that is drawn for this release, and link nothing to others.{rows}"
    return (
        f"its pseudonyms are made by the key in {place_of_key(attribute.key)}; any two releases by one key can be"
        f" joined by them, and whoever has the key can tell whose they are.{rows}"
    )


def _key(attribute: AttributeSection) -> str:
    """Say which key makes what is shown of an identifier."""
    if attribute.key is None or isinstance(attribute.key, DrawnKey):
        return "a key that is drawn for this release"
    return f"the key in {place_of_key(attribute.key)}"


def _is_text_file(file: str | None) -> bool:
    return file is not None and Path(file).suffix.lower() != PARQUET


def _place(name: str) -> str:
    return path_text(("attributes", name))
