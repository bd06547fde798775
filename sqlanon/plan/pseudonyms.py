"""Identifiers that a release shows as pseudonyms: what may be one, the key, and what readers can tell by it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    """List the identifiers that the release shows as pseudonyms or surrogates."""
    return [name for name, attribute in policy.attributes.items() if attribute.show.is_pseudonym]


def refuse_pseudonyms(policy: Policy, doer: str) -> None:
    """Raise PolicyError where a release shows pseudonyms, which `doer`, the subject of a sentence, doesn't make."""
    if names := pseudonymous(policy):
        attribute = policy.attributes[names[0]]
        raise PolicyError(f"{_place(names[0])}: {doer} makes no {attribute.show.value}s.")


def shown_column(dialect: type[Dialect], name: str, attribute: AttributeSection) -> Column:
    """Describe the column of a release that shows an identifier: text or bytes, or a whole number for a surrogate."""
    if attribute.show is Show.SURROGATE:
        return Column(name, dialect.types["int64"], Kind.INTEGER, True)
    if attribute.form == "bytes":
        return Column(name, dialect.types["bytes"], Kind.OTHER, True)
    return Column(name, dialect.types["text"], Kind.TEXT, True)


def pseudonym_problems(subject: PlanSubject) -> Iterator[str]:
    """List the reasons why identifiers can't be shown."""
    for column, attribute in subject.attributes:
        if not attribute.show.is_pseudonym:
            continue
        place, algorithm = _place(column.name), subject.policy.algorithm
        if not subject.dialect.makes_pseudonyms:
            yield f"{place}: show: {subject.dialect.makes_pseudonyms.lacking}"
        if attribute.form == "bytes" and _is_text_file(subject.policy.release.file):
            yield f"{place}: form: bytes: a CSV file holds texts alone; write a .parquet file, or leave form out."
        if column.kind is Kind.OTHER:
            yield (
                f"{place}: values of type {column.type} have no text that is the same everywhere, of which a"
                f" {attribute.show.value} could be made; {subject.recast}."
            )
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
        if not attribute.show.is_pseudonym:
            continue
        yield f"{_place(name)}: {_linked(attribute, name in repeating)}"


def _linked(attribute: AttributeSection, repeats: bool) -> str:
    rows = (
        " Rows of one value show the same, so that who knows several rows of a person may tell the person by what they"
        " have in common."
        if repeats
        else ""
    )
    if attribute.key is None:
        return f"its surrogates are drawn anew by every run, and link nothing to other releases.{rows}"
    if isinstance(attribute.key, DrawnKey):
        return f"its pseudonyms are made by a key that is drawn for this release, and link nothing to others.{rows}"
    return (
        f"its pseudonyms are made by the key in {place_of_key(attribute.key)}; any two releases by one key can be"
        f" joined by them, and whoever has the key can tell whose they are.{rows}"
    )


def _is_text_file(file: str | None) -> bool:
    return file is not None and Path(file).suffix.lower() != PARQUET


def _place(name: str) -> str:
    return path_text(("attributes", name))
