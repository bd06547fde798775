"""Calls for programs that measure the risk of tables."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from sqlanon.engines.base import Engine
from sqlanon.engines.dialects import find_dialect
from sqlanon.engines.embedded import are_same_database
from sqlanon.engines.read_options import ReadOptions
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import AccessError, PolicyError
from sqlanon.inquiries.risk.identifiers import with_identifiers
from sqlanon.inquiries.risk.in_population import bring_population, require_carriers
from sqlanon.inquiries.risk.item_sets import KNOWN, item_source, measure_items, require_known
from sqlanon.inquiries.risk.measured_table import RiskSource, risk_source
from sqlanon.inquiries.risk.row_risks import row_risks
from sqlanon.inquiries.risk.singling import Singling, measure_singling
from sqlanon.inquiries.risk.suda import FRACTION
from sqlanon.inquiries.risk.table_risk import THRESHOLDS, RiskOptions, measure_risk
from sqlanon.plan.connecting import (
    connect_to_table,
    names_file,
    open_release,
    open_second_table,
    open_source,
    release_columns,
)
from sqlanon.policy import Policy, Recodes, Role
from sqlanon.results.risk import ItemRisk, PolicyItemRisk, PolicyRisk, TableRisk
from sqlanon.sql import Relation

_WITHOUT_CLASSES = {
    Recodes.COUNTS: "The policy releases noisy counts, which have no classes of rows.",
    Recodes.NOISE: "The policy releases rows with noise, which have no classes.",
    Recodes.ITEMS: "The policy hides rules, and its release has no classes.",
    Recodes.ROWS: "The policy masks identifiers, and its release has no classes; `sqlanon risk` of a URL and a table"
    " measures columns that you name.",
}


def table_risk(
    url: str | None,
    table: str,
    quasi_identifiers: Sequence[str],
    *,
    subject: str | None = None,
    sample_of: float | None = None,
    weights: str | None = None,
    household: str | None = None,
    population: str | None = None,
    population_url: str | None = None,
    thresholds: Sequence[float] = THRESHOLDS,
    subsets: int | None = None,
    suda: int | None = None,
    rows_to: str | None = None,
    key: str | None = None,
    options: EngineOptions | None = None,
    reading: ReadOptions | None = None,
    population_reading: ReadOptions | None = None,
    trusts_owner: bool = False,
) -> TableRisk:
    """Measure the risk of any table, or of a file (see `names_file`). Nothing is made but the table of `rows_to`.

    quasi_identifiers: the columns by which somebody could be recognized; NULL is a value like others.
    subject: the column that tells whose each row is: classes are counted in distinct persons then.
    sample_of: the fraction of a population that the table is a random sample of, above 0 and at most 1: for the
        journalist's risk, for uniqueness in the population, and for DIS-SUDA scores.
    weights: the column that says for how many members of the population each row stands, for individual risks.
    household: the column that tells households apart, of which everybody is known once anybody is.
    population: the table (or, without a URL, the file) of all who could be in this one, with the same columns; where
        it has the subject's column its persons are counted, elsewhere its rows.
    population_url: the database of the population, where it is another one: its classes alone come here, each with its
        number of members.
    thresholds: of risks, above 0 and at most 1, for the shares of members at risk.
    subsets: distinction and separation are measured of all subsets of up to so many of these columns.
    suda: minimal sample uniques of up to so many of these columns are counted, and scored. With a subject both are of
        persons, each by one row, in which none of theirs may differ.
    rows_to: the new table, in the same database and for its owner alone, of each row's risk beside its `key`, a column:
        the size of its class, its individual risk, and with `suda` its scores, or those of its person.
    reading, population_reading: how files of the table and of the population are read.
    trusts_owner: whether code of the table's owner may run, on PostgreSQL, with the rights of the role that reads.

    Raises PolicyError: there is no such table or column, or a subject, weight or household can't be used.
    """
    asked, singling = RiskOptions(tuple(thresholds), sample_of), Singling(subsets, suda, fraction=sample_of or FRACTION)
    if (rows_to is None) != (key is None) or (
        rows_to is not None and (names_file(url, table) or population is not None)
    ):
        raise PolicyError(
            "--rows-to TABLE writes the risk of each row beside its --key COLUMN, into the database of the table; by"
            " the table's own classes, so without --population."
        )
    singling.require_engine(url)
    if url is not None and population_url is not None and are_same_database(url, population_url):
        population_url = None
    if population_url is not None:
        require_carriers(*(None if one is None else find_dialect(one) for one in (url, population_url)))
    named: dict[str, Any] = {"subject": subject, "weights": weights, "household": household}
    with connect_to_table(
        url,
        table,
        options,
        trusts_owner,
        reading,
        makes_tables=singling.is_wanted or population_url is not None,
        writes=rows_to is not None,
    ) as (engine, relation):
        source = risk_source(engine, relation, quasi_identifiers, **named)
        of_rows = None if rows_to is None or key is None else row_risks(source, rows_to, key, sample_of)
        with (
            _population(source, url, population, trusts_owner, population_reading)
            if population is None or population_url is None
            else _population_elsewhere(source, population_url, population, options, trusts_owner, population_reading)
        ) as known:
            measured = measure_risk(source, asked, known)
        measured = measure_singling(source, measured, singling, of_rows)
        return with_identifiers(engine, relation, measured)


def policy_risk(
    policy: Policy,
    *,
    sample_of: float | None = None,
    thresholds: Sequence[float] = THRESHOLDS,
    subsets: int | None = None,
    suda: int | None = None,
    options: EngineOptions | None = None,
) -> PolicyRisk:
    """Measure the risk of a policy's source, and of its release if one is published. Nothing is changed.

    Where the policy has a subject, classes are counted in distinct persons, of the release by what it shows of them.

    sample_of: the fraction of a population that the source is a random sample of; the release's is less in proportion
        to its rows.
    thresholds: as in `table_risk`.
    subsets, suda: as in `table_risk`, of the source, and of what the release shows.

    Raises PolicyError: the source lacks a column, or the subject is NULL in some row, without `nulls: each`.
    """
    asked, singling = RiskOptions(tuple(thresholds), sample_of), Singling(subsets, suda, fraction=sample_of or FRACTION)
    singling.require_engine(policy.source.url)
    names = [name for name, one in policy.attributes.items() if one.role is Role.QUASI_IDENTIFIER]
    read_only = policy.source.url is not None and not singling.is_wanted
    with open_source(policy, options, read_only=read_only) as (engine, relation):
        read = risk_source(engine, relation, names, **_persons(policy, policy.person))
        source = measure_singling(read, measure_risk(read, asked), singling)
        source = with_identifiers(engine, relation, source)
    if (without := _WITHOUT_CLASSES.get(policy.algorithm.recodes)) is not None:
        return PolicyRisk(source, None, without)
    if policy.algorithm.releases_clusters:
        return PolicyRisk(source, None, "The policy releases clusters with their numbers of rows, not rows.")
    if policy.hides_person:
        return PolicyRisk(
            source,
            None,
            f"The release shows nothing of '{policy.person}', so that its persons can't be counted; its run measured"
            " the risk of its classes, which `sqlanon report` shows.",
        )
    with _published(policy, options, singling.is_wanted) as opened:
        if opened is None:
            return PolicyRisk(source, None, "There is no release yet, or it can't be read.")
        engine, relation = opened
        columns = release_columns(policy, {column.name for column in engine.columns(relation)})
        asked = _of_release(asked, engine, relation, source)
        released = risk_source(engine, relation, columns, **_persons(policy, policy.released_person))
        return PolicyRisk(source, measure_singling(released, measure_risk(released, asked), singling))


def item_risk(
    url: str | None,
    table: str,
    items: str,
    *,
    subject: str | None = None,
    known: Sequence[int] = KNOWN,
    options: EngineOptions | None = None,
    reading: ReadOptions | None = None,
    trusts_owner: bool = False,
) -> ItemRisk:
    """Measure the risk of persons by so many of their items, in any table or file; nothing is changed.

    items: the column with one item a row, or with an array of a person's items in each. NULL is an item like others;
        an empty array, or NULL in its place, has none.
    subject: the column that tells persons apart; without one each row with its array is a person.
    known: the numbers of items that somebody may know, from 1 to 10.
    options, reading, trusts_owner: as of `table_risk`.

    Raises PolicyError: there is no such table or column, or nothing tells whose an item is.
    """
    numbers = require_known(known)
    dialect = None if url is None else find_dialect(url)
    if dialect is not None:
        dialect.codes_columns.require()
    with connect_to_table(url, table, options, trusts_owner, reading, makes_tables=True) as (engine, relation):
        return measure_items(item_source(engine, relation, items, subject=subject), numbers)


def policy_item_risk(
    policy: Policy, items: str, *, known: Sequence[int] = KNOWN, options: EngineOptions | None = None
) -> PolicyItemRisk:
    """Measure the same of a policy's source, and of its release if one is published, whose persons are its subject's.

    Raises PolicyError: the source lacks the column, or nothing tells whose an item is.
    """
    numbers = require_known(known)
    dialect = None if policy.source.url is None else find_dialect(policy.source.url)
    if dialect is not None:
        dialect.codes_columns.require()
    with open_source(policy, options, read_only=False) as (engine, relation):
        read = item_source(engine, relation, items, **_persons(policy, policy.person))
        source = measure_items(read, numbers)
    if policy.hides_person:
        return PolicyItemRisk(
            source, None, f"The release shows nothing of '{policy.person}', so that it has no persons."
        )
    with _published(policy, options, True) as opened:
        if opened is None:
            return PolicyItemRisk(source, None, "There is no release yet, or it can't be read.")
        engine, relation = opened
        if items not in {column.name for column in engine.columns(relation)}:
            return PolicyItemRisk(source, None, f"The release has no column '{items}'.")
        released = item_source(engine, relation, items, **_persons(policy, policy.released_person))
        return PolicyItemRisk(source, measure_items(released, numbers))


def _persons(policy: Policy, name: str | None) -> dict[str, Any]:
    """Say whose rows a table's are, by a column, and whether those of nobody known are of a person each."""
    attribute = None if name is None else policy.attributes.get(name)
    return {"subject": name, "nulls_each": attribute is not None and attribute.nulls == "each"}


@contextlib.contextmanager
def _population(
    source: RiskSource, url: str | None, table: str | None, trusts_owner: bool, reading: ReadOptions | None
) -> Iterator[RiskSource | None]:
    """The table of a source's population, or the file beside its file; None without one."""
    if table is None:
        yield None
        return
    with open_second_table(source.engine, url, table, trusts_owner, "population", reading) as relation:
        yield _population_of(source, source.engine, relation)


@contextlib.contextmanager
def _population_elsewhere(
    source: RiskSource,
    url: str,
    table: str,
    options: EngineOptions | None,
    trusts_owner: bool,
    reading: ReadOptions | None,
) -> Iterator[RiskSource]:
    """The classes of a population in another database, brought to that of the source."""
    with connect_to_table(url, table, options, trusts_owner, reading, makes_tables=True) as (engine, relation):
        brought = bring_population(_population_of(source, engine, relation), source)
    yield brought


def _population_of(source: RiskSource, engine: Engine, table: Relation) -> RiskSource:
    """The same columns of the population; persons are counted where it has the subject's column."""
    there = {column.name for column in engine.columns(table)}
    person = source.subject.name if source.subject is not None and source.subject.name in there else None
    return risk_source(engine, table, [column.name for column in source.quasi_identifiers], subject=person)


@contextlib.contextmanager
def _published(
    policy: Policy, options: EngineOptions | None, makes_tables: bool
) -> Iterator[tuple[Engine, Relation] | None]:
    """The release of a policy; None where there is none that this session may read."""
    with contextlib.ExitStack() as stack:
        try:
            opened = stack.enter_context(open_release(policy, options=options, makes_tables=makes_tables))
        except (AccessError, PolicyError):
            opened = None
        yield opened


def _of_release(asked: RiskOptions, engine: Engine, release: Relation, source: TableRisk) -> RiskOptions:
    """The same for a release, which is a smaller sample where rows were left out."""
    if asked.sample_of is None or not source.rows:
        return asked
    (rows,) = engine.query_one("count_rows", table=release)
    return replace(asked, sample_of=asked.sample_of * min(1.0, rows / source.rows) or asked.sample_of)
