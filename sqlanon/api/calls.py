"""Calls for programs, each a whole task: draft, check, verify; `run` is in `runs.sources`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.engines.embedded import MEMORY_URL
from sqlanon.engines.files import STANDARD_INPUT, directory_of, is_data_file
from sqlanon.engines.read_options import ReadOptions
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import AccessError, Cancelled, ConflictError, PolicyError, SqlanonError
from sqlanon.inquiries.profile.acceptance import find_refusals
from sqlanon.inquiries.profile.column_facts import Profile
from sqlanon.inquiries.profile.costs import DraftCosts
from sqlanon.inquiries.profile.draft import Draft, propose_policy, shown_by_file
from sqlanon.inquiries.profile.profiling import profile
from sqlanon.inquiries.profile.schema_draft import SchemaDraft, propose_tables
from sqlanon.inquiries.profile.schema_keys import measure_schema
from sqlanon.inquiries.profile.tryout import try_draft
from sqlanon.measures.masking.all_measures import DIMENSION, SAMPLE, measure_masking
from sqlanon.measures.masking.compared import compare
from sqlanon.models import PrivacyModel
from sqlanon.plan.column_names import names_a_person
from sqlanon.plan.connecting import (
    connect_to_table,
    names_file,
    open_source,
    read_file_as,
    read_to_draft,
    refuse_reading,
)
from sqlanon.plan.lookup import require_columns
from sqlanon.plan.opening import open_table
from sqlanon.plan.plan import Plan
from sqlanon.plan.subject import Repetition, find_repeating, identifying
from sqlanon.policy import Policy
from sqlanon.policy.differential_privacy import COUNT
from sqlanon.policy.loading import parse_policy
from sqlanon.results.masking import Masking
from sqlanon.results.method_result import MethodCheck
from sqlanon.runs.linking import check_run
from sqlanon.runs.sources import check_without_classes
from sqlanon.sql import Relation
from sqlanon.support import environment
from sqlanon.verification.release import attributes_of
from sqlanon.verification.verdict import Verification
from sqlanon.verification.verify import verify_table


def profile_table(
    url: str | None,
    table: str,
    options: EngineOptions | None = None,
    reading: ReadOptions | None = None,
    *,
    trusts_owner: bool = False,
) -> Profile:
    """Measure a table, or a file (see `names_file`), and propose a role for each column.

    trusts_owner: whether code of the table's owner may run, on PostgreSQL, with the rights of the role that reads.
    """
    with _profiled(url, table, options, reading, trusts_owner) as (_, facts):
        return facts


def draft_policy(
    url: str | None,
    table: str,
    options: EngineOptions | None = None,
    *,
    relative_to: str | os.PathLike[str] | None = None,
    reading: ReadOptions | None = None,
    trying: bool = True,
    trusts_owner: bool = False,
) -> str:
    """A policy in YAML with a proposal for every column of a table, or of a file; see `draft`."""
    return draft(
        url, table, options, relative_to=relative_to, reading=reading, trying=trying, trusts_owner=trusts_owner
    ).text


def draft(
    url: str | None,
    table: str,
    options: EngineOptions | None = None,
    *,
    relative_to: str | os.PathLike[str] | None = None,
    reading: ReadOptions | None = None,
    trying: bool = True,
    trusts_owner: bool = False,
) -> Draft:
    """Draft a policy with a proposal for every column of a table, or of a file; see `profile_table`.

    url, or the name of a file: with `${NAME}` expanded, and kept in the draft as it is written.
    relative_to: the directory the policy is to be in, which the name of a file is written relative to.
    reading: how a file is read; the draft says the same, and what the file shows of it by itself.
    trying: whether the draft is tried on a sample, in temporary tables, so that it says what its parts cost.
    trusts_owner: as in `profile_table`; the draft says the same.
    """
    url = None if url is None else _expanded(url)
    table = _expanded(table) if names_file(url, table) else table
    with _profiled(url, table, options, reading, trusts_owner) as (engine, facts):
        is_here = names_file(url, table) and table != STANDARD_INPUT and "://" not in table and not os.path.isabs(table)
        if is_here and relative_to is not None and os.path.relpath(table, relative_to) != os.path.normpath(table):
            table = os.path.relpath(table, relative_to)
        policy = parse_policy(propose_policy(facts, url, table, reading), relative_to)
        refusals = find_refusals(engine, facts, policy, table)
        costs = _tried(engine, facts, policy, url, options) if trying else None
    text = propose_policy(facts, url, table, reading, costs, refusals)
    return Draft(text, facts, costs, tuple(shown_by_file(facts, reading)), refusals)


def draft_schema(
    url: str,
    schema: str,
    people: str | None = None,
    options: EngineOptions | None = None,
    *,
    trusts_owner: bool = False,
) -> SchemaDraft:
    """Draft one policy for all tables of a schema that belong together; see `draft`.

    people: the table that has one row a person, where its key is not named like that of a person.
    """
    url = _expanded(url)
    with connect(url, options, read_only=True) as engine:
        return propose_tables(measure_schema(engine, schema, people, trusts_owner=trusts_owner), url, engine.render)


def _expanded(text: str) -> str:
    """Expand the references to the environment in a URL or path; one without any, or known by them, stays as it is."""
    if isinstance(text, environment.Expanded) or not environment.references(text):
        return text
    value = environment.expanded(text)
    environment.require_set(value)
    return value


@contextlib.contextmanager
def _profiled(
    url: str | None, table: str, options: EngineOptions | None, reading: ReadOptions | None, trusts_owner: bool
) -> Iterator[tuple[Engine, Profile]]:
    """The profile of a table or file, and the session that made it, which is for reading only."""
    with connect(url or MEMORY_URL, options, read_only=url is not None) as engine:
        if names_file(url, table):
            read = read_to_draft(engine, table, reading or ReadOptions())
            yield engine, replace(profile(engine, read.relation), reading=read)
        else:
            refuse_reading(table, reading)
            with open_table(engine, table, trusts_owner=trusts_owner) as relation:
                facts = profile(engine, relation)
            yield engine, replace(facts, trusts_owner=trusts_owner)


def _tried(
    engine: Engine, profile: Profile, policy: Policy, url: str | None, options: EngineOptions | None
) -> DraftCosts | None:
    """Try the draft in this session, or in one of its own where this one may make no temporary table."""
    try:
        if url is None or engine.traits.keeps_temporary_tables:
            return try_draft(engine, profile, policy)
        with connect(url, options) as session:
            session.require_writable()
            return try_draft(session, profile, policy)
    except Cancelled:
        raise
    except SqlanonError as error:
        return DraftCosts(rows=0, is_whole=False, seconds=0.0, problem=str(error))


def check_policy(policy: Policy, *, replace: bool = False, options: EngineOptions | None = None) -> Plan | MethodCheck:
    """Resolve a policy against its table and the values there, changing nothing.

    An existing release is no problem; unless it is to be replaced (`replace`), a warning says that it is there.
    Returns the plan; of a policy whose release shows no classes, its check, which has the plan.
    Raises PolicyError with every problem found, or AccessError.
    """
    if not policy.algorithm.recodes.makes_classes:
        return check_without_classes(policy, options)
    return check_run(policy, replace=replace, options=options)[0]


def check_table(
    url: str | None,
    table: str,
    quasi_identifiers: Sequence[str],
    models: Sequence[PrivacyModel],
    *,
    suppressed_label: str | None = None,
    sensitive: Sequence[str] = (),
    options: EngineOptions | None = None,
    reading: ReadOptions | None = None,
    trusts_owner: bool = False,
) -> Verification:
    """Check any table, or a file (see `names_file`), against privacy models, without a policy.

    The database is opened for reading only. Rows whose quasi-identifiers all show `suppressed_label` are a class
    that models don't judge, and the result says so.
    sensitive: columns of which is measured what classes tell, beside those that models are about.
    reading: how a file is read.
    trusts_owner: as in `profile_table`.
    Raises PolicyError for an unknown table or column, or a table of counts, whose rows are not those of persons.
    """
    with connect_to_table(url, table, options, trusts_owner, reading) as (engine, relation):
        all_sensitive = list(dict.fromkeys([*attributes_of(models), *sensitive]))
        require_columns(engine, relation, [*quasi_identifiers, *all_sensitive])
        _refuse_counts(engine.columns(relation), [*quasi_identifiers, *all_sensitive])
        return verify_table(
            engine,
            relation,
            quasi_identifiers,
            models,
            suppressed_label=suppressed_label,
            exempt=suppressed_label is not None,
            sensitive=all_sensitive,
        )


def _refuse_counts(columns: Sequence[Column], named: Sequence[str]) -> None:
    """Refuse a table with a column of counts that nobody named: its rows are cells, of many rows of a source each."""
    if any(column.name == COUNT and column.kind is Kind.INTEGER for column in columns) and COUNT not in named:
        raise PolicyError(
            f"The table has a column '{COUNT}', as releases of noisy counts have: a row of theirs is a cell, and"
            " classes of cells say nothing of persons. Check such a release by its policy (sqlanon verify POLICY); if"
            f" '{COUNT}' is an attribute like others, name it (--sensitive {COUNT})."
        )


def table_loss(
    url: str | None,
    source: str,
    release: str,
    *,
    by: Sequence[str] = (),
    columns: Sequence[str] = (),
    orders: Mapping[str, Sequence[str]] | None = None,
    dimension: int = DIMENSION,
    sample: int = SAMPLE,
    options: EngineOptions | None = None,
    reading: ReadOptions | None = None,
    release_reading: ReadOptions | None = None,
    trusts_owner: bool = False,
) -> Masking:
    """Measure what a release lost of its source, and the risk of its numbers, whatever program made it.

    Both are tables of the database, or files that its engine reads (see `names_file`); without a URL both are files.
    Nothing is changed.
    by: columns that tell the rows of both apart. Without them measures of single rows are None.
    columns: those to compare; all that both have by default. A column of numbers in both is compared as numbers, others
        as categories. Texts of a file that are all numbers are numbers.
    orders: of ordinal columns, all categories from the least to the greatest.
    dimension: the most columns of a contingency table. sample: the most rows that are linked.
    reading: how the file of the source is read; release_reading: how that of the release is.
    trusts_owner: as in `profile_table`.

    Raises PolicyError: there is no such table or column, or the tables can't be compared; it says why.
    """
    names, options = (source, release), options or EngineOptions()
    files = [name for name in names if is_data_file(name) and name != STANDARD_INPUT]
    if url is not None and options.places is not None:
        options = replace(options, places=(*options.places, *(str(directory_of(file)) for file in files)))
    with connect(url or MEMORY_URL, options, read_only=url is not None) as engine, contextlib.ExitStack() as stack:
        tables: list[Relation] = []
        for name, given in zip(names, (reading, release_reading), strict=True):
            if names_file(url, name) or (is_data_file(name) and os.path.exists(name)):
                view = f"viewed_file_{len(tables)}"
                tables.append(_numbers_read(engine, name, view, given, kept=(*by, *(orders or {}))))
            else:
                refuse_reading(name, given)
                tables.append(stack.enter_context(open_table(engine, name, trusts_owner=trusts_owner)))
        stack.enter_context(engine.undone())
        compared = compare(engine, *tables, by=by, columns=columns, orders=orders)
        return measure_masking(compared, dimension=dimension, sample=sample)


def source_repetition(policy: Policy, options: EngineOptions | None = None) -> Repetition | None:
    """The identifiers of the policy's source that repeat; None where the source can't be read."""
    try:
        with open_source(policy, options, read_only=policy.source.url is not None) as (engine, source):
            repetition = find_repeating(engine, source, identifying(policy, engine.columns(source)))
            return replace(repetition, person=policy.released_person, hidden=policy.hides_person)
    except (AccessError, ConflictError, PolicyError):
        return None


def table_repetition(
    url: str | None,
    table: str,
    options: EngineOptions | None = None,
    reading: ReadOptions | None = None,
    *,
    trusts_owner: bool = False,
) -> Repetition:
    """The columns of a table, or of a file (see `names_file`), that are named like a person's key and repeat."""
    with connect_to_table(url, table, options, trusts_owner, reading) as (engine, relation):
        columns = [column for column in engine.columns(relation) if names_a_person(column.name)]
        return find_repeating(engine, relation, columns)


def _numbers_read(engine: Engine, path: str, name: str, given: ReadOptions | None, kept: Sequence[str]) -> Relation:
    """Read a file with its texts that are all numbers as doubles, but for columns that are kept as they are."""
    reading = read_file_as(engine, path, given, name)
    numbers = {one.name: "double" for one in reading.columns if one.are_numbers and one.name not in kept}
    if numbers and path != STANDARD_INPUT:
        given = given or ReadOptions()
        return read_file_as(engine, path, replace(given, types={**numbers, **given.types}), name).relation
    return reading.relation
