"""Freezing: the recoding of a stored release becomes a job, which the database or the program runs again and again.

The database of the source has a form of the recoding as SQL to own, such as a procedure, or lacks it with a reason.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from markupsafe import Markup

from sqlanon.catalog import JOB_NAME, JOB_NAME_PROBLEM, Catalog, Job, Run, Status
from sqlanon.catalog.location import database_of, is_same_database
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.engines.dialects import dialect_named
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import PolicyError
from sqlanon.jobs.entering import enter_release, nobodys_rows, person_column
from sqlanon.jobs.procedure import ProcedureText, most_rows, routine_of, sealed
from sqlanon.jobs.recoded import (
    Recoded,
    RecodedAttribute,
    part_names,
)
from sqlanon.models import models_of
from sqlanon.models.table_model import refuse_table_models
from sqlanon.plan.checks import released_names
from sqlanon.plan.persons import refuse_joined_rows, require_models_by_rows
from sqlanon.plan.plan import Plan, resolve_source
from sqlanon.plan.subject import identifying
from sqlanon.policy import Policy, Role
from sqlanon.policy.loading import parse_stored
from sqlanon.releases.rules.export_sql import sayable_rules
from sqlanon.releases.rules.row_expressions import find_unmatched, row_filter_of
from sqlanon.releases.rules.store_rules import StoredRules, read_rules
from sqlanon.runs import OnViolation
from sqlanon.runs.choices import choice_of
from sqlanon.runs.stored import ranges_warnings, require_same
from sqlanon.sql import Expression, Identifier, Relation, Statement, Text, macro
from sqlanon.support.environment import named, require_set
from sqlanon.values.expressions import comparable

_OUTSIDE = "--no-procedure keeps a job that `sqlanon job run` carries out."


@dataclass(frozen=True)
class Freezing:
    """A request to freeze: the job's name, and the treatment of classes that violate a model.

    on_violation: they are suppressed, or end the job with an error; None for what the run's policy says.
    budget: the largest share of rows that may be suppressed; None for that of the run's policy.
    procedure: whether the database is to do the work, where it can.
    """

    name: str
    on_violation: OnViolation | None = None
    budget: float | None = None
    procedure: bool = True


def freeze(engine: Engine, catalog: Catalog, run: Run, wanted: Freezing) -> Job:
    """Make the rules of a run a new version of a job; `engine` is a session with the catalog's database.

    On PostgreSQL the job's procedure is created, or replaced by one for this version, in the same transaction.

    Raises PolicyError where the run has no rules, or they can't be frozen as wanted.
    """
    stored = read_rules(catalog, run.id)
    job = _job(catalog, run, wanted)
    if not (engine.traits.has_procedures and wanted.procedure):
        catalog.record_job(job)
        return job
    text = procedure_text(engine, catalog, run, stored, job)
    with engine.transaction():
        engine.execute(Statement("jobs/create_procedure", text.create()))
        engine.run("jobs/revoke_public", routine=Markup(text.job.routine))
        catalog.record_job_within(engine, text.job)
    return text.job


def freezing_warnings(catalog: Catalog, job: Job) -> tuple[str, ...]:
    """List the differences in behaviour between a job and the run whose rules it applies."""
    recorded = catalog.run(job.run)
    return ranges_warnings(read_rules(catalog, recorded.id), parse_stored(recorded.policy), recorded.id)


def export_procedure(engine: Engine, catalog: Catalog, run: Run, wanted: Freezing) -> str:
    """The statement that creates a procedure for the rules of a run, with the rules in it; nothing is recorded.

    Raises what `freeze` raises.
    """
    engine.traits.has_procedures.require()
    stored = read_rules(catalog, run.id)
    return procedure_text(engine, catalog, run, stored, _job(catalog, run, wanted)).create(alone=True)


def _job(catalog: Catalog, run: Run, wanted: Freezing) -> Job:
    """The job without a procedure."""
    policy = parse_stored(run.policy)
    require_models_by_rows(policy, "a job")
    refuse_table_models(models_of(policy), "a job")
    refuse_joined_rows(policy, "a job")
    if not JOB_NAME.fullmatch(wanted.name):
        raise PolicyError(JOB_NAME_PROBLEM)
    if run.status is not Status.PUBLISHED:
        raise PolicyError(f"Run {run.id} published nothing: its status is {run.status.value}.")
    older = next(iter(catalog.jobs(wanted.name)), None)
    if older is not None and older.scheduler == "pg_cron" and not wanted.procedure:
        raise PolicyError(
            f"pg_cron starts job {wanted.name} by its procedure, which goes on applying the rules of run {older.run}:"
            f" `sqlanon unschedule {wanted.name}` first."
        )
    decided = decide(wanted, policy)
    return Job(
        name=wanted.name,
        version=1 if older is None else older.version + 1,
        run=run.id,
        source=named(policy.source.file or policy.source.table or ""),
        release=run.release,
        on_violation=decided.on_violation or "error",
        budget=decided.budget,
        created=datetime.now(UTC),
        schedule=None if older is None else older.schedule,
        scheduler=None if older is None else older.scheduler,
    )


def decide(wanted: Freezing, policy: Policy) -> Freezing:
    """Complete a request by the choices of the policy; PolicyError where the result makes no sense."""
    choice, budget = wanted.on_violation or choice_of(policy), wanted.budget
    if choice == "error":
        if budget is not None:
            raise PolicyError("--budget is for --on-violation suppress.")
        return replace(wanted, on_violation=choice)
    if budget is None and not policy.suppression:
        raise PolicyError("How many rows may be suppressed? The run's policy allows none; give --budget, such as 0.01.")
    return replace(wanted, on_violation=choice, budget=policy.suppression if budget is None else budget)


def procedure_text(engine: Engine, catalog: Catalog, run: Run, stored: StoredRules, job: Job) -> ProcedureText:
    """The procedure of a job, after everything that the database couldn't do was refused."""
    policy = parse_stored(run.policy)
    wrong = list(_problems(engine, catalog, run, policy, job))
    if wrong:
        raise PolicyError([*wrong, _OUTSIDE])
    plan = resolve_source(policy, engine, publishing=True)
    if str(plan.source) != run.source:
        raise PolicyError(
            f"Run {run.id} released {run.source}, and the table of its policy is {plan.source} now: run the policy "
            "again."
        )
    require_same(plan, stored, engine.name)
    unmatched = [*find_unmatched(engine, policy, stored.attributes), *nobodys_rows(policy)]
    kept = row_filter_of(unmatched) if job.on_violation == "suppress" else None
    recoded = _recoded(engine, catalog, plan, stored, kept)
    made = replace(
        job,
        source=str(plan.source),
        most_rows=most_rows(plan.rows),
        routine=str(routine_of(catalog, job.name)),
        recoding=recoded.select,
        assigning=recoded.parts.assigning if recoded.parts else None,
        showing=recoded.parts.showing if recoded.parts else None,
    )
    models = models_of(policy)
    rules, digests = catalog.rules_run(run.id), policy.digest == "run"
    repeats = repeat_tests(engine, plan)
    entered = enter_release(engine, catalog, plan, recoded, models, most_rows(plan.rows))
    text = ProcedureText(
        engine, catalog, made, models, recoded, unmatched, repeats, rules, stored.digest, digests, entered
    )
    return replace(text, job=sealed(replace(made, inspection=text.inspection())))


def _problems(engine: Engine, catalog: Catalog, run: Run, policy: Policy, job: Job) -> Iterator[str]:
    require_set(policy.source.url, policy.release.url)
    if policy.history.adds:
        yield "history: a procedure releases all rows anew, and adds no batch as the policy's mode: increments asks."
    elif policy.released_person is not None:
        yield f"subject: a procedure counts rows, and not the persons of '{policy.person}'."
    if policy.source.file is not None or policy.release.file is not None:
        yield "A procedure reads a table and writes a table; this run has a file."
    elif run.database != database_of(engine) or policy.release.url not in (None, policy.source.url):
        yield "A procedure needs the source, the release and the catalog in one database."
    if policy.release.layout == "star":
        yield "A procedure writes a flat table, and the policy says `layout: star`."
    if not is_same_database(engine, catalog.store):
        yield "A procedure needs the catalog in the database of the source."
    yield from problems_of_statements(policy, job.on_violation, "A procedure")


def problems_of_statements(policy: Policy, on_violation: str | None, what: str) -> Iterator[str]:
    """List the demands of a policy that statements alone don't meet; what: the subject of the sentences."""
    if policy.stars and on_violation == "suppress":
        yield (
            f"{what} leaves suppressed rows out, and the policy says `suppressed: star`; with --on-violation error"
            " it suppresses none."
        )
    if any(model.needs_hierarchy for model in models_of(policy)):
        yield f"{what} has no hierarchy to measure t-closeness with `distance: hierarchical` by."
    if any(model.needs_solver for model in models_of(policy)):
        yield f"{what} has no solver to measure t-closeness with a `distance` by costs out of a file."


def _recoded(engine: Engine, catalog: Catalog, plan: Plan, stored: StoredRules, kept: Expression | None) -> Recoded:
    """The rules as one SELECT of the rows that are kept, and the columns that it gives in the order of the release."""
    try:
        person = person_column(engine, plan)
        rules = sayable_rules(catalog.store, stored, plan.policy, person)
        select = rules.text(plan.source, kept)
    except PolicyError as error:
        remaining = [problem for problem in error.problems if "sqlanon apply" not in problem]
        raise PolicyError([*remaining, _OUTSIDE]) from None
    columns, regions = recoded_columns(engine, plan, select)
    whose = None if person is None else Column(person["name"].name, "text", Kind.TEXT)
    signature = tuple((name, kind) for name, kind, _ in engine.query("jobs/list_columns", table=Text(str(plan.source))))
    parts = rules.in_two_parts(plan.source, kept, part_names(columns))
    kind, owner = engine.query_one("engines/show_owner", table=Text(str(plan.source)))
    trusts = plan.policy.trust == "owner"
    shown = _attributes(plan, stored)
    sensitive = tuple(plan.policy.sensitive)
    return Recoded(
        select, plan.source, signature, columns, regions, shown, parts, sensitive, kind, owner, trusts, whose
    )


def _attributes(plan: Plan, stored: StoredRules) -> tuple[RecodedAttribute, ...]:
    """The quasi-identifiers as results describe them."""
    heights = {attribute.name: attribute.height for attribute in stored.attributes}
    return tuple(
        RecodedAttribute(
            name=one.name,
            type=one.column.type,
            show=one.show.value,
            hierarchy=None if one.hierarchy is None else one.hierarchy.kind,
            height=heights[one.name],
            columns=tuple(released_names(one.name, plan.policy.attributes[one.name])),
        )
        for one in plan.quasi_identifiers
    )


def recoded_columns(engine: Engine, plan: Plan, select: str) -> tuple[tuple[Column, ...], tuple[str, ...]]:
    """The columns that a recoding gives, in the order of the release, and the names of those that show regions."""
    given = {column.name: column for column in _columns_of(engine, select)}
    names: list[str] = []
    regions: list[str] = []
    for attribute in plan.attributes:
        shown = [attribute.name]
        if attribute.role is Role.QUASI_IDENTIFIER:
            shown = released_names(attribute.name, plan.policy.attributes[attribute.name])
            regions += shown
        names += shown
    return tuple(given[name] for name in names), tuple(regions)


def _columns_of(engine: Engine, select: str) -> list[Column]:
    """The columns of a SELECT, which is planned but not run."""
    pattern = Relation("sqlanon_pattern")  # temporary, in the schema that is looked through first
    engine.begin()
    try:
        engine.execute_privately(engine.render("jobs/create_pattern", table=pattern, recoding=Markup(select)))
        return engine.columns(pattern)
    finally:
        engine.rollback()


_ROWS_NEVERTHELESS = (
    "Write `subject: none` into the policy to release rows nevertheless, run it again, and freeze that run."
)
_ONE_ROW_A_PERSON = (
    "Releases are held against each other for tables of one row a person (history): make such a table or view, run the"
    " policy on it, and freeze that run."
)


def repeat_tests(engine: Engine, plan: Plan) -> list[dict[str, Expression]]:
    """List tests over all rows `s` of the source that are true where an identifier may repeat, and what to say then.

    There are none if the policy declares its subject, unless an account knows persons by it. A column that a constraint
    keeps unique is not read: the test is whether the constraint is still there.
    """
    known = None if not plan.policy.history.is_kept else plan.person
    if plan.policy.subject is not None and known is None:
        return []
    unique, tests = engine.unique_columns(plan.source), []
    columns = [known.column] if known is not None else identifying(plan.policy, engine.columns(plan.source))
    for column in columns:
        if column.name in unique:
            listing = engine.render("engines/list_unique_columns", table=Text(str(plan.source))).text
            test = macro("jobs.has_lost", Text(column.name), Markup(listing))
            what = "lost its unique constraint, so that it may repeat"
        else:
            value = comparable(engine, macro("codes.in_source", Identifier(column.name)), column.kind)
            test, what = macro("jobs.repeats" if known is None else "jobs.is_shared", value), "repeats"
        remedy = _ROWS_NEVERTHELESS if known is None else _ONE_ROW_A_PERSON
        problem = f"Column '{column.name}' of {plan.source} {what}: rows are not persons then. {remedy}"
        tests.append({"test": test, "problem": Markup(Text(problem))})
    return tests


def require_form(catalog: Catalog, run: str, form: str) -> None:
    """Raise PolicyError, with the remedy, where the database that a run's rules are for lacks a form of them."""
    dialect = dialect_named(read_rules(catalog, run).content["dialect"])
    capabilities = {
        "procedure": dialect.has_procedures,
        "dbt": dialect.has_dbt_projects,
        "labels": dialect.reads_labels,
    }
    if form in capabilities:
        capabilities[form].require(f"--as {form}: ")


@contextlib.contextmanager
def session_of_source(engine: Engine, catalog: Catalog, run: Run, options: EngineOptions | None) -> Iterator[Engine]:
    """Give a session with the source of a run: that of the catalog, or another one where the source can keep none."""
    url = parse_stored(run.policy).source.url
    if url is None or dialect_named(read_rules(catalog, run.id).content["dialect"]).keeps_catalog:
        yield engine
        return
    with connect(url, options) as session:
        yield session
