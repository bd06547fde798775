"""The persons of a run's release, by the rules that the run left or applied."""

from __future__ import annotations

from dataclasses import replace

from sqlanon.catalog import Catalog, Run
from sqlanon.catalog.location import database_of, is_same_database
from sqlanon.encoding.pseudonymized import without_pseudonyms
from sqlanon.engines.base import Engine
from sqlanon.plan.plan import Plan, resolve_source
from sqlanon.policy import Policy
from sqlanon.releases.equivalence_classes import EquivalenceClasses
from sqlanon.releases.rules.store_rules import StoredRules
from sqlanon.report.releases_together.persons import ReleasePersons, count_persons, person_text, require_person
from sqlanon.runs.execution import ClassRun
from sqlanon.runs.fingerprint import fingerprint
from sqlanon.runs.recoded_again import recoded_again, require_same_source, stored_policy
from sqlanon.staging.recode import create_witness
from sqlanon.work.journal import Silent
from sqlanon.work.session import Session
from sqlanon.work.workspace import Workspace


def recoded_persons(
    engine: Engine, workspace: Workspace, catalog: Catalog, recorded: Run, rules: StoredRules, known: Policy
) -> ReleasePersons:
    """Find the persons of a run's release, in the source that the run read.

    known: a policy with the URL of the source, and its `subject`.

    Raises PolicyError where the source has changed, or is in another database.
    """
    policy = stored_policy(recorded, known.source.url, database_of(engine), known)
    plan = without_pseudonyms(resolve_source(policy, engine))
    require_person(plan)
    require_same_source(recorded, plan.rows, fingerprint(engine, plan), engine.version, None)
    release = _recoded(engine, workspace, catalog, recorded, rules, plan)
    witness = create_witness(engine, workspace, release.recoding)
    members = workspace.table("members")
    engine.run(
        "report/releases_together/create_run_members",
        members=members,
        classes=release.classes,
        person=person_text(engine, witness, f"v{len(release.recoding.coded.kept)}"),
        witness=witness,
    )
    return ReleasePersons(recorded.id, "run", members, count_persons(engine, members, f"Run {recorded.id}"))


def _recoded(
    engine: Engine, workspace: Workspace, catalog: Catalog, recorded: Run, rules: StoredRules, plan: Plan
) -> EquivalenceClasses:
    """Make the classes of the release again; nothing is staged."""
    session = Session(engine, engine, catalog, own_catalog=is_same_database(engine, catalog.store))
    run = ClassRun(session, plan.policy, Silent())
    run.workspace, run.plan, run.snapshot, run.id = workspace, plan, plan, recorded.id
    again = recoded_again(catalog, recorded, rules)
    again.require_source(run)
    encoded = again.encode(run)
    release = again.decide(run, replace(encoded, tuples=again.distinct_tuples(run, encoded.coded)))
    assert isinstance(release, EquivalenceClasses)
    return release
