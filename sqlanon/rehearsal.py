"""What a run would send to the database, without sending it: for `run --dry-run` and `check --sql`.

Planning reads the live table, and so does the measuring of the source. From then on statements are only rendered, and
what they would answer is made up: dictionaries of 1,000 values, a target of three classes, a tree that splits once more
in its second round and ends in its third, a lattice of the four most general nodes, all of which satisfy the models.
The statements are those of a run; widths of codes, cuts, the number of rounds and of checks depend on the data. Of a
statement that a search over a lattice repeats, the first few stand for all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlanon.before import count_labels, count_values, source_statistics
from sqlanon.catalog import Step
from sqlanon.checking import check_release
from sqlanon.checkpoints import basis_of
from sqlanon.encoding import CodedTable, encode
from sqlanon.engines.base import Column, Engine, EngineOptions, Kind, RelationType
from sqlanon.hierarchies.scratch import hierarchies_of_models
from sqlanon.lattice.lattice import Node
from sqlanon.lattice.search import pose, search
from sqlanon.lattice.wishes import Wishes
from sqlanon.loss import measure_loss
from sqlanon.models import from_spec
from sqlanon.models.base import PrivacyModel
from sqlanon.models.k_anonymity import KAnonymity
from sqlanon.partition import mondrian, rothko_s, specialization
from sqlanon.partition.collapse import collapse
from sqlanon.partition.groups import groups_of
from sqlanon.partition.result import Partition
from sqlanon.plan import Plan, resolve
from sqlanon.plan_checks import released_names
from sqlanon.policy import Policy, RothkoS, TopDown, Tree
from sqlanon.recode import Recoding, create_regions
from sqlanon.rows import stage
from sqlanon.rules.digest import table_digests
from sqlanon.rules.keeping import make
from sqlanon.rules.store import drop_codes
from sqlanon.rules.tables import NAMES
from sqlanon.session import open_to_look
from sqlanon.sql import Identifier, Relation, Statement
from sqlanon.verify import verify_table
from sqlanon.workload.views import measures_of_run
from sqlanon.workspace import Workspace

VALUES = 1_000  # made-up size of a dictionary
_READ = ("encoding/measure_source", "encoding/measure_fractions", "engine/")  # what is really asked
_REPEATS = 2  # statements of one template that a search over a lattice shows
_REMARKS = {
    "lattice/create_plain_base": "-- One of two forms: where many sampled rows are alike, the run groups all rows\n"
    "-- (SELECT the same columns, count(*) ... GROUP BY each of them).\n",
}
"""What a reader must know of a statement that a run may send in another form."""
_ROUNDS = [(0, 1, 0), (1, 1, 1), (2, 0, 0)]  # leaves, active nodes, those to be searched at every threshold, by round


@dataclass(frozen=True)
class Rehearsal:
    """The plan, and the statements by phase in the order of a run."""

    plan: Plan
    steps: list[Step]


def rehearse(
    policy: Policy, options: EngineOptions | None = None, replace: bool = False, wishes: Wishes | None = None
) -> Rehearsal:
    """Resolve the policy and render every statement of its run; raises what `run` would raise before it begins."""
    policy = (wishes or Wishes()).applied_to(policy)
    with open_to_look(policy, options) as (engine, target):
        plan = resolve(policy, engine, replace=replace, release_engine=target)
        rehearsed = _RehearsedEngine(engine, plan)
        _play(rehearsed, plan, policy, wishes or Wishes())
        return Rehearsal(plan, rehearsed.steps)


def _play(engine: _RehearsedEngine, plan: Plan, policy: Policy, wishes: Wishes) -> None:
    models = tuple(from_spec(spec) for spec in policy.privacy)
    workspace = _Names(engine)
    engine.phase = "encode"
    coded = encode(engine, plan, workspace)
    basis_of(engine, plan, wishes)
    tuples = None
    if isinstance(policy.algorithm, Tree | RothkoS | TopDown):
        tuples = collapse(engine, workspace, coded, groups_of(policy.algorithm, models).fields(coded))
    source_statistics(engine, coded, tuples)
    count_values(engine, coded, tuples)
    engine.phase = "search"
    if isinstance(policy.algorithm, Tree):
        partition = mondrian.search(engine, workspace, coded, tuples, models, policy.algorithm, lambda _progress: None)
    elif isinstance(policy.algorithm, RothkoS):
        partition = rothko_s.search(engine, workspace, coded, tuples, models, policy.algorithm, lambda _progress: None)
    elif isinstance(policy.algorithm, TopDown):
        partition = specialization.search(
            engine, workspace, coded, tuples, models, policy.algorithm, lambda _progress: None
        )
    else:
        partition = _search_lattice(engine, workspace, coded, models, policy, wishes)
    engine.phase = "recode"
    recoding = create_regions(engine, workspace, coded, partition)
    if policy.target is not None:
        measures_of_run(engine, recoding, policy.target)
    measure_loss(engine, partition)
    count_labels(engine, recoding)
    _keep_rules(engine, plan, workspace, recoding)
    staged = plan.release.sibling("sqlanon_staging")
    stage(engine, workspace, plan, recoding, staged)
    engine.phase = "verify"
    check_release(engine, workspace, plan, recoding, staged)
    columns = [cell.column.name for cell in recoding.cells]
    with hierarchies_of_models(engine, policy, models, staged) as hierarchies:
        verify_table(engine, staged, columns, models, hierarchies=hierarchies)
    engine.phase = "publish"
    if policy.release.file is None:
        engine.run("publish/rename_table", table=staged, name=Identifier(plan.release.name))


def _keep_rules(engine: _RehearsedEngine, plan: Plan, workspace: Workspace, recoding: Recoding) -> None:
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
    engine: _RehearsedEngine,
    workspace: Workspace,
    coded: CodedTable,
    models: tuple[PrivacyModel, ...],
    policy: Policy,
    wishes: Wishes,
) -> Partition:
    """The policy's algorithm, at work on the top of the lattice; heights are made up, and limits not looked at."""
    algorithm = policy.algorithm.model_copy(update={"limits": {}})
    policy = policy.model_copy(update={"algorithm": algorithm})
    posed = Wishes(time_limit=wishes.time_limit, any_size=True)
    engine.repeats = _REPEATS
    problem = pose(engine, workspace, coded, models, policy, lambda _progress: None, posed)
    top = problem.lattice.top
    lowered = [max(0, level - 1) if place < 2 else level for place, level in enumerate(top)]
    engine.bottom = tuple(lowered)
    problem = replace(problem, lattice=replace(problem.lattice, bottom=engine.bottom))
    if wishes.levels is not None:
        posed = Wishes(levels=dict(zip(problem.lattice.names, top, strict=True)))
    partition = search(problem, policy, posed)
    engine.repeats = None
    return partition


class _Names(Workspace):
    """Names of work tables that are never made."""

    def __init__(self, engine: _RehearsedEngine) -> None:
        self._prefix_relation = engine.work_prefix

    def on(self, session: Engine) -> Workspace:  # noqa: ARG002 - one session plays all parts
        return self

    def table(self, meaning: str, number: int | None = None) -> Relation:
        prefix = self._prefix_relation
        return prefix.sibling(f"{prefix.name}{meaning}" + ("" if number is None else f"_{number}"))

    def drop(self, *tables: Relation) -> None:
        """Nothing was made."""


@dataclass
class _RehearsedEngine(Engine):
    """An engine that writes down what it is told, and answers what a small table would."""

    inner: Engine
    plan: Plan
    phase: str = "plan"
    steps: list[Step] = field(default_factory=list)
    rounds: list[tuple[int, int, int]] = field(default_factory=lambda: list(_ROUNDS))
    gains: list[int] = field(default_factory=lambda: [1, 0])  # nodes that can be split by gain, of each round
    repeats: int | None = None  # how many statements of one template are written down; all by default
    bottom: Node = ()  # of the lattice that is searched
    stacked: list[int] = field(default_factory=list)  # generalizations that the last table of frequency sets holds

    def __post_init__(self) -> None:
        self.dialect = self.inner.dialect  # type: ignore[misc]
        self.sorts_narrow_rows = self.inner.sorts_narrow_rows  # type: ignore[misc]
        self.replaces_work_tables = self.inner.replaces_work_tables  # type: ignore[misc]
        self.stacked_tuples = self.inner.stacked_tuples  # type: ignore[misc]
        self.parallel_sessions = 1

    @property
    def work_prefix(self) -> Relation:
        if self.dialect == "duckdb":
            return Relation("w_run_", "main", "temp")
        return Relation("w_run_", self.plan.policy.catalog.schema_)

    def _note(self, statement: Statement) -> None:
        noted = sum(step.name == statement.name and step.phase == self.phase for step in self.steps)
        if self.repeats is not None and noted >= self.repeats:
            return
        text = _REMARKS.get(statement.name, "") + statement.record
        self.steps.append(Step(len(self.steps), self.phase, statement.name, text, 0.0))

    def _execute(self, statement: Statement) -> int:
        self._note(statement)
        if statement.name == "lattice/roll_up_each":
            self.stacked = _stacked(statement)
        return VALUES

    def _fetch(self, statement: Statement) -> list[tuple[Any, ...]]:
        if statement.name.startswith(_READ):
            if statement.name.startswith("encoding/"):
                self._note(statement)
            return self.inner.fetch(statement)
        self._note(statement)
        family = statement.name.rsplit("/", 1)[0] + "/"
        answer = _ANSWERS.get(statement.name) or _ANSWERS.get(family) or _zeros
        return answer(self, statement)

    def load(self, table: Relation, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:  # noqa: ARG002
        names = tuple(Identifier(column) for column in columns)
        self._note(self.render("engine/insert_rows", table=table, columns=names, rows=1))

    def resolve(self, relation: Relation) -> Relation | None:
        return relation

    def reads(self, relation: Relation, table: Relation) -> bool:
        return self.inner.reads(relation, table)

    def columns(self, relation: Relation) -> list[Column]:  # noqa: ARG002 - the staged release is all that is asked for
        kept = {attribute.name: attribute.column for attribute in self.plan.kept}
        shown = [
            Column(name, "text", Kind.TEXT)
            for attribute in self.plan.quasi_identifiers
            for name in released_names(attribute.name, self.plan.policy.attributes[attribute.name])
        ]
        return [*shown, *kept.values()]

    def relation_type(self, relation: Relation) -> RelationType:
        return self.inner.relation_type(relation)

    @property
    def version(self) -> str:
        return self.inner.version

    @property
    def driver_connection(self) -> Any:
        return self.inner.driver_connection

    def begin(self) -> None:
        """Nothing is written."""

    def commit(self) -> None:
        """Nothing is written."""

    def rollback(self) -> None:
        """Nothing is written."""

    def relations(self) -> list[Relation]:
        return []

    def _fork(self) -> Engine:
        return self

    def cancel(self) -> None:
        """Nothing runs."""

    def close(self) -> None:
        """The inner engine is its owner's."""


_Answer = Callable[[_RehearsedEngine, Statement], list[tuple[Any, ...]]]


def _zeros(_engine: _RehearsedEngine, statement: Statement) -> list[tuple[Any, ...]]:
    """One row, zero in each column."""
    return [(0,) * _columns(statement.text)]


def _columns(text: str) -> int:
    """The columns of a query: one more than the commas between its SELECT and FROM, those in parentheses left out."""
    depth, columns = 0, 0
    for token in re.findall(r"'[^']*'|\"[^\"]*\"|[(),]|\w+", text):
        depth += {"(": 1, ")": -1}.get(token, 0)
        if depth == 0 and columns and token.upper() in ("FROM", "UNION"):
            break
        if depth == 0 and (token == "," if columns else token.upper() == "SELECT"):
            columns += 1
    return max(columns, 1)


def _count_nodes(engine: _RehearsedEngine, _statement: Statement) -> list[tuple[Any, ...]]:
    leaves, active, searched = engine.rounds.pop(0)
    engine.rounds = engine.rounds or list(_ROUNDS)  # for the next tree
    return [(leaves, active, engine.plan.rows if active else 0, searched * _searches(engine), active)]


def _searches(engine: _RehearsedEngine) -> bool:
    """Whether a run might search nodes at every threshold (see `partition.thresholds.searchable`)."""
    looks = any(not isinstance(model, KAnonymity) for model in map(from_spec, engine.plan.policy.privacy))
    return looks and any(attribute.hierarchy is None for attribute in engine.plan.quasi_identifiers)


def _count_settled(engine: _RehearsedEngine, _statement: Statement) -> list[tuple[Any, ...]]:
    """One leaf is sampled again, after the first episode."""
    episodes = sum(step.name == "sampling/count_settled" for step in engine.steps)
    return [(1, engine.plan.rows) if episodes == 1 else (0, 0)]


def _gain_nodes(engine: _RehearsedEngine, _statement: Statement) -> list[tuple[Any, ...]]:
    engine.gains = engine.gains or [1, 0]  # for the next tree
    return [(engine.gains.pop(0),)]


def _gain_splits(engine: _RehearsedEngine, _statement: Statement) -> list[tuple[Any, ...]]:
    """The first round splits its node by gain, the second one hands a node on."""
    return [(0, 1, engine.plan.rows) if engine.gains else (1, 0, 0)]


def _gain_parts(engine: _RehearsedEngine, _statement: Statement) -> list[tuple[Any, ...]]:
    """A bin of every attribute without a hierarchy may hold a better cut."""
    return [(number, 1) for number, a in enumerate(engine.plan.quasi_identifiers) if a.hierarchy is None]


def _digits(_engine: _RehearsedEngine, statement: Statement) -> list[tuple[Any, ...]]:
    digits = len(re.findall(r"\bmax\(", statement.text))
    return [(VALUES, *[9] * digits)]


def _axes(engine: _RehearsedEngine, _statement: Statement) -> list[tuple[Any, ...]]:
    return [(VALUES, False) * len(engine.plan.quasi_identifiers)]


def _suppressed(engine: _RehearsedEngine) -> int:
    """One row, if any may be: then the statements about suppressed rows are there."""
    return min(1, int(engine.plan.policy.suppression * engine.plan.rows))


def _marginal(engine: _RehearsedEngine, statement: Statement) -> list[tuple[Any, ...]]:
    """Half as many groups on each level as below."""
    rows, levels = engine.plan.rows, statement.text.count("GROUP BY g.leaves")
    groups = [(level, 2**level, max(1, VALUES >> level), rows, 0.0) for level in range(levels + 1)]
    return [(-1, 0, 0, None, None), *groups]


def _class_sizes(engine: _RehearsedEngine, statement: Statement) -> list[tuple[Any, ...]]:
    """One class, and one more of the row that is suppressed, if any is."""
    gone = _suppressed(engine)
    sizes = [(engine.plan.rows - gone, 1), *[(1, 1)] * gone]
    return [(node, *size) for node in _stacked(statement) for size in sizes]


def _gains(_engine: _RehearsedEngine, statement: Statement) -> list[tuple[Any, ...]]:
    """Two children of the root, which are values."""
    return [(statement.text.count("WHERE p.level ="), 0, 2, 1)]


def _group_sizes(engine: _RehearsedEngine, statement: Statement) -> list[tuple[Any, ...]]:
    """One group on each level."""
    return [(level, engine.plan.rows, 1) for level in range(statement.text.count("GROUP BY g.n"))]


def _stacked(statement: Statement) -> list[int]:
    """The numbers of the generalizations that a statement counts."""
    numbers = re.findall(r"^\s+\((\d+), [\d, -]+\)|\bSELECT (\d+) AS node", statement.text, re.MULTILINE)
    return [int(several or single) for several, single in numbers]


def _candidate(engine: _RehearsedEngine, statement: Statement) -> list[tuple[Any, ...]]:
    """One candidate in each iteration: the first attributes, at the bottom of the lattice."""
    size = statement.text.count("c.dim_")
    return [(0, *range(size), *engine.bottom[:size])]


def _measured_classes(engine: _RehearsedEngine, _statement: Statement) -> list[tuple[Any, ...]]:
    models = [(place + 1, None, 0, 0.0, 0.0, 0) for place in range(len(engine.plan.policy.privacy))]
    return [(-1, None, 0, None, None, None), (0, VALUES, 1, None, None, None), *models]


_ANSWERS: dict[str, _Answer] = {
    "rules/digest_tables": lambda *_: [],
    "rules/count_torn": lambda *_: [(0, 0, 0)],
    "rules/count_segments": lambda engine, _: [(n, 3) for n, _a in enumerate(engine.plan.quasi_identifiers)],
    "rules/measure_depth": lambda *_: [(2,)],
    "encoding/measure_classes": lambda engine, _: [(engine.plan.rows, 1)],
    "count_rows": lambda engine, _: [(engine.plan.rows,)],
    "gain/count_classes": lambda *_: [(3,)],
    "gain/count_nodes": _gain_nodes,
    "gain/count_parts": _gain_parts,
    "gain/count_splits": _gain_splits,
    "hierarchies/count_torn_groups": lambda *_: [],
    "hierarchies/measure_length": lambda *_: [(5,)],
    "hierarchies/measure_digits": _digits,
    "lattice/count_class_sizes": _class_sizes,
    "lattice/count_failing_sizes": lambda engine, _: [(1, 1)] * _suppressed(engine),
    "lattice/count_group_sizes": _group_sizes,
    "lattice/count_suppressed_sizes": lambda *_: [],
    "lattice/count_failing_each": lambda engine, s: [(node, _suppressed(engine), 0, VALUES) for node in _stacked(s)],
    "lattice/count_sets": lambda engine, _: [(node, VALUES) for node in engine.stacked],
    "lattice/count_small_each": lambda engine, s: [(node, _suppressed(engine), VALUES) for node in _stacked(s)],
    "lattice/list_candidates": _candidate,
    "lattice/list_edges": lambda *_: [],
    "lattice/count_failing": lambda engine, _: [(_suppressed(engine), 0)],
    "lattice/count_small": lambda engine, _: [(_suppressed(engine),)],
    "lattice/measure_marginal": _marginal,
    "lattice/sum_failing": lambda engine, _: [(_suppressed(engine), 0, _suppressed(engine))],
    "models/": lambda *_: [(0, 0.0, False)],
    "partition/count_nodes": _count_nodes,
    "partition/measure_axes": _axes,
    "partition/sample_tuples": lambda engine, _: [(engine.plan.rows, engine.plan.rows, engine.plan.rows, 0)],
    "release/compare_classes": lambda *_: [(0, 0)],
    "release/measure_range": lambda *_: [(0.0, 1.0)],
    "sampling/count_settled": _count_settled,
    "sampling/count_short": lambda *_: [(0,)],
    "sampling/measure_tree": lambda *_: [(2, 5, 5)],
    "specialization/count_nulls": lambda *_: [(0,)],
    "specialization/measure_gains": _gains,
    "verify/compare_multisets": lambda *_: [(0, 0)],
    "workload/measure_information": lambda engine, _: [(1, engine.plan.rows, 0)],
    "workload/measure_span": lambda *_: [(0.0, 1.0)],
    "verify/measure_avs": _measured_classes,
    "verify/measure_classes": _measured_classes,
}
