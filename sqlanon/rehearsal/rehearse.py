"""What a run would send to the database, without sending it: for `run --dry-run` and `check --sql`.

Planning reads the live table, and so does the measuring of the source. From then on statements are only rendered, and
what they would answer is made up: dictionaries of 1,000 values, a target of three classes, a tree that splits once more
in its second round and ends in its third, a lattice of the four most general nodes, all of which satisfy the models.
The statements are those of a run; widths of codes, cuts, the number of rounds and of checks depend on the data. Of a
statement that a search over a lattice repeats, the first few stand for all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from sqlanon.catalog import Step
from sqlanon.encoding.coded_table import CodedTable, encode
from sqlanon.engines.base import EngineOptions
from sqlanon.hierarchies.scratch import hierarchies_of_models
from sqlanon.lattice.search import pose, search
from sqlanon.lattice.wishes import Wishes
from sqlanon.measures.before import count_labels, count_values, source_statistics
from sqlanon.measures.combinations import measure_combinations
from sqlanon.measures.distributions import measure_distributions
from sqlanon.measures.loss import measure_loss
from sqlanon.models import largest_k, models_of
from sqlanon.models.base import PrivacyModel
from sqlanon.partition.collapse import Tuples
from sqlanon.partition.result import Partition
from sqlanon.plan import Plan, resolve, with_word_of_release
from sqlanon.policy import FullDomain, Policy
from sqlanon.publish import publish, publish_star
from sqlanon.publish.files import write_rows
from sqlanon.publish.star import Form, Star, put_star
from sqlanon.rehearsal.answers import Scene
from sqlanon.rehearsal.engine import RehearsedEngine, RehearsedNames
from sqlanon.rehearsal.publishing import Publishing
from sqlanon.release.recode import Recoding, create_regions
from sqlanon.release.rows import rows_for_a_file, stage
from sqlanon.release.star import stage_star, star_columns
from sqlanon.rules.digest import table_digests
from sqlanon.rules.keeping import make
from sqlanon.rules.store import drop_codes
from sqlanon.rules.tables import NAMES
from sqlanon.runs.checkpoints import basis_of
from sqlanon.runs.searching import distinct_tuples, search_partition
from sqlanon.sql import Identifier, Relation
from sqlanon.verification.checking import check_release
from sqlanon.verification.verify import verify_table
from sqlanon.work.session import open_to_look
from sqlanon.work.workspace import Workspace
from sqlanon.workload.views import measures_of_run

_REPEATS = 2  # statements of one template that a search over a lattice shows


@dataclass(frozen=True)
class Rehearsal:
    """The plan, and the statements by phase in the order of a run."""

    plan: Plan
    steps: list[Step]


def rehearse(
    policy: Policy, options: EngineOptions | None = None, replace: bool = False, wishes: Wishes | None = None
) -> Rehearsal:
    """Resolve the policy and render every statement of its run; raises what `run` would raise before it begins.

    A release that exists is taken to be replaced; without `replace` a warning of the plan says what a run needs.
    """
    policy = (wishes or Wishes()).applied_to(policy)
    with open_to_look(policy, options) as (engine, target):
        plan = resolve(policy, engine, replace=True, release_engine=target)
        if not replace:
            plan = with_word_of_release(plan, engine, target)
        rehearsed = RehearsedEngine(engine, Scene(plan))
        _play(rehearsed, plan, policy, wishes or Wishes())
        return Rehearsal(plan, rehearsed.scene.steps)


def _play(engine: RehearsedEngine, plan: Plan, policy: Policy, wishes: Wishes) -> None:
    models = models_of(policy)
    workspace = RehearsedNames(engine)
    engine.open()
    engine.phase = "encode"
    with engine.transaction():
        coded = encode(engine, plan, workspace)
        basis_of(engine, plan, wishes)
    tuples = distinct_tuples(engine, workspace, coded, models, policy)
    source_statistics(engine, coded, tuples)
    measure_combinations(engine, coded, tuples, largest_k(models))
    count_values(engine, coded, tuples)
    engine.phase = "search"
    if isinstance(policy.algorithm, FullDomain):
        partition = _search_lattice(engine, workspace, coded, tuples, models, policy, wishes)
    else:
        partition = search_partition(engine, workspace, coded, tuples, models, policy, lambda _progress: None, wishes)
    engine.phase = "recode"
    recoding = create_regions(engine, workspace, coded, partition)
    if policy.target is not None:
        measures_of_run(engine, recoding, policy.target)
    measure_loss(engine, partition)
    count_labels(engine, recoding)
    _keep_rules(engine, plan, workspace, recoding)
    measure_distributions(engine, recoding, partition, largest_k(models))
    star = None
    if policy.release.layout == "star":
        staged = plan.release.sibling("sqlanon_staging")
        star = Star.of(staged, star_columns(plan, recoding))
        with engine.transaction():
            stage_star(engine, workspace, plan, recoding, star)
    else:
        staged = _stage(engine, plan, workspace, recoding)
    engine.phase = "verify"
    check_release(engine, workspace, plan, recoding, staged, engine.columns(staged), star)
    columns = [cell.column.name for cell in recoding.cells]
    with hierarchies_of_models(engine, policy, models, staged) as hierarchies:
        verify_table(engine, staged, columns, models, hierarchies=hierarchies, sensitive=policy.sensitive)
    engine.phase = "publish"
    _publish(engine, plan, staged, star)


def _publish(engine: RehearsedEngine, plan: Plan, staged: Relation, star: Star | None) -> None:
    """The statements that let the staged release take its name; a file needs none."""
    release = plan.policy.release
    if release.file is not None:
        return
    if release.url in (None, plan.policy.source.url):
        engine.publishing = Publishing(engine.inner, (staged, *(star.tables if star is not None else ())))
        if star is not None:
            publish_star(engine, star, plan.release, replace=True, wait=0)
        else:
            publish(engine, staged, plan.release, replace=True, wait=0)
        return
    engine.remark = "-- In the release's database, where the rows have been copied to this table.\n"
    if star is not None:
        put_star(engine, star, Star.of(plan.release), Form.NOTHING, keeps_view=False)
    else:
        final = plan.release.sibling("sqlanon_staging")
        engine.run("publish/rename_table", table=final, name=Identifier(plan.release.name))


def _stage(engine: RehearsedEngine, plan: Plan, workspace: Workspace, recoding: Recoding) -> Relation:
    """The statements that build the release: a table beside it, rows for a file, or a work table that is copied."""
    release = plan.policy.release
    if release.file is not None and engine.sorts_narrow_rows:
        view = Relation("released_rows", "main", "temp")
        with rows_for_a_file(engine, workspace, plan, recoding, view):
            engine.remark = "-- To a part file, which takes the place of the release once it has been verified.\n"
            write_rows(engine, view, Path(release.file))
            engine.remark = ""
        return view
    beside = release.file is None and release.url in (None, plan.policy.source.url)
    staged = plan.release.sibling("sqlanon_staging") if beside else workspace.table("staged")
    with engine.transaction():
        stage(engine, workspace, plan, recoding, staged)
    return staged


def _keep_rules(engine: RehearsedEngine, plan: Plan, workspace: Workspace, recoding: Recoding) -> None:
    """The statements that make, check and keep the rules."""
    made = make(engine, workspace, recoding)
    if made is not None:
        drop_codes(engine, made.tables)
        engine.query_one("count_rows", table=made.tables.leaves)
        table_digests(engine, made.attributes, made.tables)
        for name, work in zip(NAMES, made.tables.all, strict=True):
            table = Relation(f"rules_{name}", plan.policy.catalog.schema_)
            engine.run("rules/store_table", table=table, work=work)


def _search_lattice(
    engine: RehearsedEngine,
    workspace: Workspace,
    coded: CodedTable,
    tuples: Tuples | None,
    models: tuple[PrivacyModel, ...],
    policy: Policy,
    wishes: Wishes,
) -> Partition:
    """The policy's algorithm, at work on the top of the lattice; heights are made up, and limits not looked at."""
    algorithm = policy.algorithm.model_copy(update={"limits": {}})
    policy = policy.model_copy(update={"algorithm": algorithm})
    posed = Wishes(time_limit=wishes.time_limit, any_size=True)
    engine.repeats = _REPEATS
    problem = pose(engine, workspace, coded, tuples, models, policy, lambda _progress: None, posed)
    top = problem.lattice.top
    lowered = [max(0, level - 1) if place < 2 else level for place, level in enumerate(top)]
    engine.scene.bottom = tuple(lowered)
    problem = replace(problem, lattice=replace(problem.lattice, bottom=engine.scene.bottom))
    if wishes.levels is not None:
        posed = Wishes(levels=dict(zip(problem.lattice.names, top, strict=True)))
    partition = search(problem, policy, posed)
    engine.repeats = None
    return partition
