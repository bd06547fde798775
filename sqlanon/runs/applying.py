"""Applying stored rules: new rows are recoded like those of a release, then checked and published like one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from sqlanon.catalog import RulesKind, Run, RunStart
from sqlanon.encoding.coded_table import CodedTable, encode
from sqlanon.engines.base import EngineOptions
from sqlanon.engines.files import STANDARD_INPUT, is_data_file
from sqlanon.engines.urls import redacted
from sqlanon.environment import Expanded, named, require_set
from sqlanon.errors import PolicyError, ProtectionError
from sqlanon.lattice.problem import Problem
from sqlanon.lattice.recoding import recode_node
from sqlanon.lattice.remainder import recode_in_passes
from sqlanon.lattice.search import pose
from sqlanon.lattice.wishes import Wishes, node_of
from sqlanon.measures.before import count_values, source_statistics
from sqlanon.measures.distributions import Distributions
from sqlanon.measures.loss import Loss
from sqlanon.partition.collapse import Tuples
from sqlanon.partition.result import Partition
from sqlanon.plan import Plan
from sqlanon.policy import Attribute, FullDomain, Policy, Release, Role, Source
from sqlanon.policy import Catalog as CatalogPlace
from sqlanon.policy.loading import parse_stored
from sqlanon.publish.publishers import publisher_of
from sqlanon.release.recode import Recoding, create_regions, end_name
from sqlanon.release.staging import Staged
from sqlanon.rules.classes import Applied, Suppression, show_regions
from sqlanon.rules.fitting import find_fitting
from sqlanon.rules.levels import apply_cuts
from sqlanon.rules.misfits import SUPPRESSED_FOR
from sqlanon.rules.routing import route
from sqlanon.rules.starred import complete
from sqlanon.rules.store import StoredRules, fetch_tables, read_rules
from sqlanon.runs import OnViolation
from sqlanon.runs.choices import choice_of
from sqlanon.runs.columns import (
    changed_columns,
    columns_of,
    created_warning,
    pinned_origin,
    release_problem,
    require_columns,
)
from sqlanon.runs.outcome import Outcome
from sqlanon.runs.runner import Course
from sqlanon.sql import Relation
from sqlanon.suggest import quoted
from sqlanon.work.journal import Observer, Silent
from sqlanon.work.session import Session, open_session
from sqlanon.work.workspace import Workspace

_ANY = 1 - 1e-12  # the share of rows that may be suppressed, when the result says how many are


@dataclass(frozen=True)
class Application:
    """What is to be done: the rows of `to`, a table or file, by the rules of a run, into `out`.

    out: None stands for where the run's release is.
    on_violation: what becomes of classes that violate a model: they are suppressed, or nothing is published; None for
    what the run's policy says.
    budget: the largest share of rows that may be suppressed; None for any, or for that of the policy where it decides.
    job, version: the name of the job that it is a run of, and the version of it.
    """

    run: str
    to: str
    out: str | None = None
    on_violation: OnViolation | None = None
    replace: bool = False
    budget: float | None = None
    job: str | None = None
    version: int | None = None


def apply_rules(
    application: Application,
    found: Run,
    place: tuple[str, str],
    known: Policy | None = None,
    *,
    options: EngineOptions | None = None,
    observer: Observer | None = None,
) -> Outcome:
    """Recode new rows with the rules of a stored release, check the result, and publish it as a run of its own.

    found: the run whose rules are applied; place: the URL and schema of the catalog that it is in.
    known: a policy whose URLs have their passwords, which the catalog doesn't keep; columns that the run's policy does
    not name, and this one calls identifiers, are left out, and its subject holds.

    Raises what `run` raises; ProtectionError where a class violates a model and that is to be an error.
    """
    policy = _policy(application, found, place, known)
    require_set(policy.source.file, policy.release.file)
    with open_session(policy, options or EngineOptions()) as session:
        stored = read_rules(session.catalog, found.id)
        pinned = _pinned(policy, stored)
        return _Apply(session, pinned, application, found, stored, observer or Silent()).carry_out()


def _policy(application: Application, found: Run, place: tuple[str, str], known: Policy | None) -> Policy:
    """The policy of the run, with other rows for its source and another place for its release."""
    stored = parse_stored(found.policy)
    urls = [place[0]]
    for part in (known.source, known.release, known.catalog) if known is not None else ():
        urls += [part.url] if part.url is not None else []

    def whole(url: str | None) -> str | None:
        return next((known for known in urls if redacted(known) == url), url)

    source = _file_source(application.to, stored.source) if is_data_file(application.to) else None
    home = whole(stored.source.url) or whole(stored.release.url) or place[0]
    release_url = whole(stored.release.url)
    if source is None:
        source = Source(url=home, table=application.to)
    release = stored.release.model_copy(update={"url": release_url})
    if application.out is not None and is_data_file(application.out):
        release = Release(file=str(Path(application.out).absolute()))
    elif application.out is not None:
        same = release_url is None and source.file is None
        release = Release(url=None if same else release_url or home, table=application.out)
    if release.table is not None and source.file is not None and release.url is None:
        release = release.model_copy(update={"url": home})
    catalog = CatalogPlace(url=place[0], schema=place[1])
    attributes = {**_new_identifiers(stored, known), **stored.attributes}
    changes: dict[str, Any] = {"source": source, "release": release, "catalog": catalog, "attributes": attributes}
    if known is not None and known.subject is not None:
        changes["subject"] = known.subject
    return stored.model_copy(update=changes)


def _file_source(file: str, stored: Source) -> Source:
    """A file, read as the one that the rules were found on."""
    kept = file == STANDARD_INPUT or isinstance(file, Expanded)
    path = file if kept else str(Path(file).absolute())
    return Source(file=path) if stored.file is None else stored.model_copy(update={"file": path})


def _new_identifiers(stored: Policy, known: Policy | None) -> dict[str, Attribute]:
    """The columns that have come since the rules were found, and that are to be left out: rules are about no others."""
    attributes = {} if known is None else known.attributes
    return {
        name: attribute
        for name, attribute in attributes.items()
        if attribute.role is Role.IDENTIFIER and name not in stored.attributes
    }


def _pinned(policy: Policy, stored: StoredRules) -> Policy:
    """The policy with masks as long as they were, and limits that are the numbers they were."""
    heights = {a.name: a.height for a in stored.attributes}
    limits = {a.name: a.limits for a in stored.attributes}
    attributes = dict(policy.attributes)
    for name, attribute in policy.attributes.items():
        hierarchy = attribute.hierarchy
        if hierarchy is not None and hierarchy.mask is not None and heights.get(name) is not None:
            pinned = hierarchy.model_copy(update={"length": heights[name]})
            attributes[name] = attribute.model_copy(update={"hierarchy": pinned})
        if limits.get(name):
            ends = {"bottom": limits[name].bottom, "top": limits[name].top}
            attributes[name] = attribute.model_copy(update={key: _number(end) for key, end in ends.items()})
    return policy.model_copy(update={"attributes": attributes})


def _number(end: Decimal | None) -> int | float | None:
    """A limit as policies have it."""
    if end is None:
        return None
    return int(end) if end == end.to_integral_value() else float(end)


def _decided(application: Application, policy: Policy) -> Application:
    """The application with the choices of the policy where it makes none."""
    if application.on_violation is not None:
        return application
    return replace(application, on_violation=choice_of(policy), budget=policy.suppression or None)


class _Apply(Course):
    """A run that looks its recoding up."""

    def __init__(
        self,
        session: Session,
        policy: Policy,
        application: Application,
        found: Run,
        stored: StoredRules,
        observer: Observer,
    ) -> None:
        super().__init__(session, policy, application.replace, observer, Wishes())
        self.application = _decided(application, policy)
        self.found = found
        self.rules_run = session.catalog.rules_run(found.id)
        self.stored = stored
        self.applied: Applied | None = None
        self.suppression: Suppression | None = None
        self.created = False  # whether a job found no release to replace

    def _rules_of(self) -> str:
        return self.rules_run

    def _plan(self) -> Plan:
        if self.policy.source.table is not None:
            if self.application.job is not None:
                self.pinned = pinned_origin(self.found)
            self._require_columns(self.engine.resolve(Relation.parse(self.policy.source.table)))
        plan = super()._plan()
        if self.policy.source.file is not None:  # which is no relation before
            self._require_columns(plan.source)
        if self.application.job is not None:
            self.created = not self.policy.release.file and not self._holds(plan.release)
        return plan

    def _require_columns(self, source: Relation | None) -> None:
        """A job reads the columns that its rules were found on; the plan tells of a source that is not there."""
        job, name = self.application.job, named(self.policy.source.file or str(source))
        if job is not None and source is not None:
            require_columns(job, self.found, name, columns_of(self.engine, source))

    def _holds(self, release: Relation) -> bool:
        """Whether there is a table of this name where the release goes."""
        return publisher_of(self.session.target).exists(release)

    def _publish(self, plan: Plan, staged: Staged, outcome: Outcome) -> None:
        """A job replaces a release of the same columns alone, as its procedure would."""
        if self.application.job is not None and self.policy.release.file is None and self._holds(plan.release):
            was, now = (columns_of(staged.engine, relation) for relation in (staged.final, plan.release))
            changed = changed_columns(was, now)
            if changed is not None:
                raise PolicyError(release_problem(plan.release_name, self.application.job, changed))
        super()._publish(plan, staged, outcome)

    def _digest(self) -> str:
        return self.stored.digest

    def _warnings(self, plan: Plan) -> tuple[str, ...]:
        return (
            *super()._warnings(plan),
            *([created_warning(plan.release_name)] if self.created else []),
            *ranges_warnings(self.stored, self.policy, self.found.id),
        )

    def _start(self, source: str, release: str, rows: int | None) -> RunStart:
        return replace(super()._start(source, release, rows), algorithm="apply", seed=None, job=self.application.job)

    def _summarize(self, plan: Plan, outcome: Outcome) -> None:
        super()._summarize(plan, outcome)
        outcome.algorithm = "apply"

    def _encode(self, plan: Plan, workspace: Workspace, outcome: Outcome) -> tuple[CodedTable, Tuples | None]:
        with self.journal.during("encode"):
            require_same(plan, self.stored, self.engine.dialect)
            coded = self._code(plan, workspace, outcome)
            if not self.left_out:  # otherwise these are not all rows of the source
                outcome.before = source_statistics(self.engine, coded, None)
            self.values = count_values(self.engine, coded, None)
        return coded, None

    def _encoded(self, plan: Plan, workspace: Workspace) -> CodedTable:
        """Rows that no rule is about are left out where rows may be; a row of stars would have to be coded."""
        if self.policy.stars:
            return super()._encoded(plan, workspace)
        if self.application.on_violation == "error":
            try:
                return super()._encoded(plan, workspace)
            except PolicyError as error:
                error.add_note("--on-violation suppress leaves rows with values that no rule knows out.")
                raise
        found = find_fitting(self.engine, workspace, plan, self.stored)
        if found is None:
            return super()._encoded(plan, workspace)
        self.left_out = found.left_out
        if not found.rows:
            raise ProtectionError("No rule is about any of these rows; nothing was published.")
        self._require_budget(found.left_out, found.left_out + found.rows)
        return encode(self.engine, plan, workspace, found.condition)

    def _search(self, coded: CodedTable, tuples: Tuples | None, workspace: Workspace) -> Partition:
        del tuples
        with self.journal.during("search"):
            _require_same_heights(coded, self.stored)
            if self.stored.tables is None:
                return self._generalize(coded, workspace)
            rules = fetch_tables(self.engine, self.catalog, workspace, self.stored.tables)
            if self.stored.record.kind is RulesKind.CUTS:
                recoding = create_regions(
                    self.engine, workspace, coded, apply_cuts(self.engine, workspace, coded, rules)
                )
                applied = Applied(recoding.regions, recoding.partition.assigned, recoding.shown)
                return self._judge(coded, applied, workspace)
            routed = route(self.engine, workspace, coded, self.stored.attributes, rules)
            applied = show_regions(self.engine, workspace, coded, self.stored.attributes, rules, routed)
            return self._judge(coded, applied, workspace)

    def _generalize(self, coded: CodedTable, workspace: Workspace) -> Partition:
        """Full-domain generalization at the stored levels."""
        lenient = self.policy.model_copy(update={"suppression": _ANY})
        problem = pose(
            self.engine, workspace, coded, self.models, lenient, self.journal.progress, Wishes(any_size=True)
        )
        partition = recode_at_levels(problem, self.policy, self.stored)
        self._refuse(partition.suppressed, coded.source_rows)
        return replace(partition, found=self._told())

    def _told(self) -> dict[str, Any]:
        """What the result records of the application, as the policy is that of the other run."""
        told = self.application
        of_job = {} if told.job is None else {"job": told.job, "version": told.version}
        return {"applied": self.rules_run, **of_job, "on_violation": told.on_violation, "budget": told.budget}

    def _refuse(self, failing: int, coded: int) -> None:
        """Raise ProtectionError if so many rows would have to be suppressed, and may not be.

        failing: rows of classes that violate a model; coded: all rows but those that no rule is about.
        """
        if failing and self.application.on_violation == "error":
            raise ProtectionError(
                f"{failing:,} of {coded:,} rows are in classes that violate a model; nothing was published."
                " --on-violation suppress leaves such classes out."
            )
        if failing == coded:
            raise ProtectionError("Every class of these rows violates a model; nothing was published.")
        self._require_budget(failing + self.left_out, coded + self.left_out)

    def _require_budget(self, rows: int, of: int) -> None:
        budget = self.application.budget
        if budget is not None and rows > Fraction(str(budget)) * of:
            raise ProtectionError(
                f"{rows:,} of {of:,} rows {SUPPRESSED_FOR}, which is more than the budget allows; "
                "nothing was published."
            )

    def _judge(self, coded: CodedTable, applied: Applied, workspace: Workspace) -> Partition:
        """Find the classes that violate a model, and suppress them if that is wanted."""
        stars = self.policy.stars
        search = Suppression(self.engine, workspace, coded, self.models, applied, not stars, coded.source_rows)
        rows = search.run()
        self._refuse(rows, coded.source_rows)
        if rows and self.policy.judges_stars:
            rows = self._complete(search, rows, coded.source_rows)
        self.applied, self.suppression = applied, search
        return Partition(
            axes=tuple(shown.axis for shown in applied.shown),
            leaves=applied.regions,
            assigned=applied.assigned,
            rounds=0,
            suppressed=rows,
            starred=-1 if stars and rows else None,
            found={**self._told(), "suppressed_classes": search.classes},
        )

    def _complete(self, search: Suppression, rows: int, of: int) -> int:
        """Star further classes until the starred rows are one that satisfies the models; the rows starred then.

        Raises ProtectionError where no classes do: the budget says how many rows may be, and one class is to stay.
        """
        budget = self.application.budget
        most = of - 1 if budget is None else min(of - 1, int(Fraction(str(budget)) * of))
        found = complete(search, rows, most)
        if found > most:
            within = "" if budget is None else f" within the budget of {budget * 100:g} %"
            raise ProtectionError(
                f"{rows:,} of {of:,} rows would be shown with stars, as one class that violates a model, and no other"
                f" classes can join them{within} so that it does not; nothing was published."
            )
        return found

    def _recode(self, coded: CodedTable, partition: Partition, workspace: Workspace, outcome: Outcome) -> Recoding:
        if self.applied is None or self.suppression is None:
            return super()._recode(coded, partition, workspace, outcome)
        with self.journal.during("recode"):
            boxed = self.stored.record.kind is RulesKind.TREE
            count = 0 if boxed else sum(len(shown.ends) for shown in self.applied.shown)
            regions = self.suppression.release(partition.starred is not None, [end_name(n) for n in range(count)])
            return Recoding(
                regions, self.applied.cells, self.applied.shown, partition, coded, boxed, has_ends=not boxed
            )

    def _loss(self, partition: Partition) -> Loss | None:
        """Rows that no rule is about are suppressed rows like others."""
        if self.stored.tables is not None:
            return None
        return super()._loss(replace(partition, suppressed=partition.suppressed + self.left_out))

    def _distributions(self, recoding: Recoding) -> Distributions | None:
        """Rules of a tree say what rows show, not in codes of these rows."""
        return super()._distributions(recoding) if self.stored.tables is None else None

    def _kept_rules(self, recoding: Recoding, workspace: Workspace, outcome: Outcome) -> StoredRules | None:
        """The rules are those of the other run."""
        del recoding, workspace, outcome
        return None


def ranges_warnings(stored: StoredRules, policy: Policy, run: str) -> tuple[str, ...]:
    """The sentence about labels that differ from those of the run whose rules they are, where they do."""
    if policy.ranges == "cuts" or stored.record.kind is not RulesKind.TREE:
        return ()
    changed = quoted(a.name for a in stored.attributes if not a.keeps_stand_in)
    if not changed:
        return ()
    return (
        f"Run {run} showed ranges over the values of its classes; its rules show them from cut to cut"
        f" ({', '.join(changed)}), open at the ends, so the same row may show another label. With `ranges: cuts` in"
        " the policy the first release and all later ones show the same.",
    )


def recode_at_levels(problem: Problem, policy: Policy, stored: StoredRules) -> Partition:
    """The full-domain generalization that rules of levels say, with what has to be suppressed."""
    algorithm = policy.algorithm
    assert isinstance(algorithm, FullDomain)
    nodes = [node_of(problem.lattice, levels) for levels in stored.content["passes"]]
    completes = policy.remainder == "recode" and policy.judges_stars
    if len(nodes) > 1 or completes:
        return recode_in_passes(problem, algorithm, nodes, judges_stars=completes)
    return recode_node(problem.sets, nodes[0])


def require_same(plan: Plan, stored: StoredRules, dialect: str) -> None:
    """Refuse rows whose columns are not those that the rules were made for."""
    if stored.content["dialect"] != dialect:
        raise PolicyError(
            f"The rules are of a release by {stored.content['dialect']}, and these rows would be read by {dialect}: "
            "load them into the database of that release."
        )
    kinds = {attribute.name: attribute.column.kind for attribute in plan.quasi_identifiers}
    wrong = [
        f"Column '{a.name}' holds values of kind {kinds[a.name]}, and the rules are about {a.kind}; cast it in a view."
        for a in stored.attributes
        if kinds[a.name] is not a.kind
    ]
    if wrong:
        raise PolicyError(wrong)


def _require_same_heights(coded: CodedTable, stored: StoredRules) -> None:
    wrong = []
    for field, attribute in zip(coded.quasi_identifiers, stored.attributes, strict=True):
        height = field.coding.hierarchy.height if field.coding.hierarchy else None
        if height != attribute.height:
            wrong.append(f"The hierarchy of '{attribute.name}' has {height} levels now, and had {attribute.height}.")
    if wrong:
        raise PolicyError(wrong)
