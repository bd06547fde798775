"""Origins of a release: the rules that another run has stored."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from sqlanon.algorithms import algorithm_of
from sqlanon.algorithms.placement import search_with_rows
from sqlanon.algorithms.search_options import SearchOptions
from sqlanon.catalog import Catalog, RulesKind, Run
from sqlanon.encoding.coded_table import CodedTable, encode
from sqlanon.engines.base import Engine
from sqlanon.engines.publishing import publisher_of
from sqlanon.errors import PolicyError, ProtectionError
from sqlanon.models import models_by_rows
from sqlanon.plan.persons import refuse_joined_rows, require_models_by_rows
from sqlanon.plan.plan import Plan
from sqlanon.plan.population_checks import refuse_covering
from sqlanon.policy import Policy
from sqlanon.releases.base import Release
from sqlanon.releases.earlier_groups import EarlierGroups
from sqlanon.releases.generalized import Reapplied
from sqlanon.releases.rules.classify_rows import Applied, Suppression, classify_rows, complete
from sqlanon.releases.rules.coarsen_rules import coarsen_rules
from sqlanon.releases.rules.row_expressions import SUPPRESSED_FOR, find_row_filter
from sqlanon.releases.rules.store_rules import StoredRules, fetch_tables
from sqlanon.results.search_facts import AppliedFacts
from sqlanon.runs import OnViolation
from sqlanon.runs.accounts.repaired_rules import OwnRules, prune_rules, require_mergeable
from sqlanon.runs.accounts.repairing import Coarsen, repaired
from sqlanon.runs.class_source import ClassSource
from sqlanon.runs.column_changes import (
    changed_columns,
    columns_of,
    created_warning,
    pinned_origin,
    release_problem,
    require_columns,
)
from sqlanon.runs.execution import ClassRun, Encoded
from sqlanon.runs.search_source import search_request
from sqlanon.sql import Relation
from sqlanon.staging.partition import Partition
from sqlanon.staging.recode import Recoding, create_regions, end_name
from sqlanon.staging.staging import Staged
from sqlanon.support.environment import named
from sqlanon.support.suggest import quoted
from sqlanon.work.workspace import Workspace


@dataclass(frozen=True)
class Application:
    """A request to apply rules: the rows of `to`, a table or file, by the rules of a run, into `out`.

    out: None stands for where the run's release is.
    on_violation: what becomes of classes that violate a model: they are suppressed, or nothing is published; None for
    what the run's policy says.
    budget: the largest share of rows that may be suppressed; None for any, or for that of the policy where it decides.
    job, version: the name of the job that it is a run of, and the version of it.
    repair: whether classes are merged where the account of the people would refuse the release.
    """

    run: str
    to: str
    out: str | None = None
    on_violation: OnViolation | None = None
    replace: bool = False
    budget: float | None = None
    job: str | None = None
    version: int | None = None
    repair: bool = False


class Stored(ClassSource):
    """The rules that another run has stored, for rows that came later.

    application: with the choices of the policy where it made none. found: the run that is named; stored: its rules.
    """

    algorithm = "apply"

    def __init__(self, catalog: Catalog, application: Application, run: Run, stored: StoredRules) -> None:
        self.application = application
        self.recorded = run
        self.stored = stored
        self.job = application.job
        self.rules_run = catalog.rules_run(run.id)
        self.rules_digest = stored.digest
        self.repairs = application.repair
        self._own: OwnRules | None = None
        self._created = False  # whether a job found no release to replace

    def require_source(self, run: ClassRun) -> None:
        if self.repairs:
            require_mergeable(self.stored)
        require_models_by_rows(run.policy, "the check of rules that are applied")
        refuse_joined_rows(run.policy, "the check of rules that are applied")
        refuse_covering(run.policy, "a run of the new rows chooses levels for it (sqlanon run), and not stored rules")
        if run.policy.source.table is not None:
            if self.job is not None:
                self.pinned = pinned_origin(self.recorded)
            self._require_columns(run, run.engine.resolve(Relation.parse(run.policy.source.table)))

    def require_plan(self, run: ClassRun) -> None:
        super().require_plan(run)
        plan = run.plan
        if run.policy.source.file is not None:  # which is no relation before
            self._require_columns(run, plan.source)
        if self.job is not None:
            self._created = not run.policy.release.file and not _holds(run, plan.release)

    def _require_columns(self, run: ClassRun, source: Relation | None) -> None:
        """A job reads the columns that its rules were found on; the plan tells of a source that is not there."""
        name = named(run.policy.source.file or str(source))
        if self.job is not None and source is not None:
            require_columns(self.job, self.recorded, name, columns_of(run.engine, source))

    def warnings(self, run: ClassRun) -> tuple[str, ...]:
        created = (created_warning(run.plan.release_name),) if self._created else ()
        return (*created, *ranges_warnings(self.stored, run.policy, self.recorded.id))

    def encode(self, run: ClassRun) -> Encoded:
        """Leave out rows that no rule is about where rows may be; a row of stars would have to be coded."""
        require_same(run.plan, self.stored, run.engine.name)
        if run.policy.stars:
            return super().encode(run)
        if self.application.on_violation == "error":
            try:
                return super().encode(run)
            except PolicyError as error:
                error.add_note("With --on-violation suppress, rows with values that no rule knows are left out.")
                raise
        row_filter = find_row_filter(run.engine, run.workspace, run.snapshot, self.stored)
        if row_filter is None:
            return super().encode(run)
        if not row_filter.rows:
            raise ProtectionError("No rule is about any of these rows; nothing was published.")
        self._require_budget(row_filter.unmatched, row_filter.unmatched + row_filter.rows)
        coded = encode(run.engine, run.snapshot, run.workspace, row_filter.condition, whole=self.repairs or None)
        return Encoded(coded, unmatched_rows=row_filter.unmatched)

    def decide(self, run: ClassRun, encoded: Encoded) -> Release:
        with run.journal.during("search"):
            _require_same_heights(encoded.coded, self.stored)
            if self.stored.tables is not None:
                return self._decide_by_tables(run, encoded)
            request = search_request(run, encoded.coded, SearchOptions()).without_suppression_limit()
            levels = algorithm_of(run.policy.algorithm).by_rules(self.stored)
            generalized = search_with_rows(levels, request.with_tuples(levels))
            self._refuse(generalized.suppressed, encoded)
        with run.journal.during("recode"):
            release = self._released_levels(run.engine, run.workspace, encoded, generalized)

            def coarsen(earlier: EarlierGroups, workspace: Workspace) -> Release | None:
                coarser = levels.coarsen(replace(request, workspace=workspace), generalized, earlier)
                if coarser is None:
                    return None
                self._own = OwnRules.of_levels(run, coarser)
                self._refuse(coarser.suppressed, encoded)
                return self._released_levels(run.engine, workspace, encoded, coarser)

            return self._repaired(run, encoded, release, coarsen) if self.repairs else release

    def _released_levels(self, engine: Engine, workspace: Workspace, encoded: Encoded, made: Partition) -> Release:
        described = replace(made, facts=self._facts())
        return Reapplied(create_regions(engine, workspace, encoded.coded, described), in_codes=True)

    def _decide_by_tables(self, run: ClassRun, encoded: Encoded) -> Release:
        """Classify these rows by the rules of a tree or of cuts."""
        rules = self._rules_for(run, encoded.coded)
        applied = classify_rows(run.engine, run.workspace, encoded.coded, rules)
        release = self._suppress(run, run.workspace, encoded, applied)

        def coarsen(earlier: EarlierGroups, workspace: Workspace) -> Release | None:
            pruned = prune_rules(run.engine, workspace, encoded.coded, rules, earlier)
            if pruned is None:
                return None
            self._own = OwnRules.of_tree(run, pruned)
            coarser = classify_rows(run.engine, workspace, encoded.coded, pruned)
            return self._suppress(run, workspace, encoded, coarser)

        return self._repaired(run, encoded, release, coarsen) if self.repairs else release

    def _repaired(self, run: ClassRun, encoded: Encoded, release: Release, coarsen: Coarsen) -> Release:
        """Repair the release; its rules are the run's own then."""
        chosen = repaired(run, encoded, release, coarsen)
        if chosen is release:
            self._own = None
        if self._own is not None:
            self.rules_run = self.rules_digest = None
        return chosen

    def _rules_for(self, run: ClassRun, coded: CodedTable) -> StoredRules:
        """Fetch the rules; those of a tree as far down as a batch allows."""
        assert self.stored.tables is not None
        tables = fetch_tables(run.engine, run.catalog, run.workspace, self.stored.tables)
        rules = replace(self.stored, tables=tables)
        if run.policy.history.adds and rules.record.kind is RulesKind.TREE:
            rules = coarsen_rules(run.engine, run.workspace, coded, models_by_rows(run.policy), rules)
        return rules

    def _facts(self) -> AppliedFacts:
        """Say what the application was, as the policy is that of the other run."""
        asked = self.application
        return AppliedFacts(
            applied=self.rules_run or self.recorded.id,
            job=asked.job,
            version=None if asked.job is None else asked.version,
            on_violation=asked.on_violation,
            budget=asked.budget,
            coarsened=None if self._own is None else True,
        )

    def _suppress(self, run: ClassRun, workspace: Workspace, encoded: Encoded, applied: Applied) -> Release:
        """Find the classes that violate a model, and suppress them if that is wanted."""
        coded, stars, boxed = encoded.coded, run.policy.stars, self.stored.record.has_boxes
        models = models_by_rows(run.policy)
        search = Suppression(run.engine, workspace, coded, models, applied, not stars, coded.source_rows)
        rows = search.run()
        self._refuse(rows, encoded)
        if rows and run.policy.judges_stars:
            rows = self._complete(search, rows, coded.source_rows)
        partition = Partition(
            axes=tuple(shown.axis for shown in applied.shown),
            leaves=applied.regions,
            assigned=applied.assigned,
            rounds=0,
            suppressed=rows,
            suppressed_leaf=-1 if stars and rows else None,
            facts=replace(self._facts(), suppressed_classes=search.classes),
        )
        with run.journal.during("recode"):
            count = 0 if boxed else sum(len(shown.ends) for shown in applied.shown)
            regions = search.release(partition.suppressed_leaf is not None, [end_name(n) for n in range(count)])
            recoding = Recoding(regions, applied.cells, applied.shown, partition, coded, boxed, has_ends=not boxed)
        return Reapplied(recoding)

    def _complete(self, search: Suppression, rows: int, of: int) -> int:
        """Star further classes until the starred rows are one that satisfies the models; the rows starred then.

        Raises ProtectionError where no classes do: the budget says how many rows may be, and one class is to stay.
        """
        budget = self.application.budget
        most = of - 1 if budget is None else min(of - 1, int(Fraction(str(budget)) * of))
        starred = complete(search, rows, most)
        if starred > most:
            within = "" if budget is None else f" within the budget of {budget * 100:g} %"
            raise ProtectionError(
                f"{rows:,} of {of:,} rows would be shown with stars, as one class that violates a model, and no other"
                f" classes can join them{within} so that it does not; nothing was published."
            )
        return starred

    def _refuse(self, failing: int, encoded: Encoded) -> None:
        """Raise ProtectionError if so many rows would have to be suppressed, and may not be.

        failing: rows of classes that violate a model, among those that rules are about.
        """
        coded = encoded.coded.source_rows
        if failing and self.application.on_violation == "error":
            raise ProtectionError(
                f"{failing:,} of {coded:,} rows are in classes that violate a model; nothing was published."
                " --on-violation suppress leaves such classes out."
            )
        if failing == coded:
            raise ProtectionError("Every class of these rows violates a model; nothing was published.")
        self._require_budget(failing + encoded.unmatched_rows, coded + encoded.unmatched_rows)

    def _require_budget(self, rows: int, of: int) -> None:
        budget = self.application.budget
        if budget is not None and rows > Fraction(str(budget)) * of:
            raise ProtectionError(
                f"{rows:,} of {of:,} rows {SUPPRESSED_FOR}, which is more than the budget allows; "
                "nothing was published."
            )

    def keep_rules(self, run: ClassRun, release: Release) -> StoredRules | None:  # noqa: ARG002
        """Keep those that a repair has made: all others are those of the other run."""
        return None if self._own is None else self._own.keep(run)

    def require_staged(self, run: ClassRun, staged: Staged) -> None:
        """A job replaces a release of the same columns alone, as its procedure would."""
        plan = run.plan
        if self.job is not None and run.policy.release.file is None and _holds(run, plan.release):
            was, now = (columns_of(staged.engine, relation) for relation in (staged.final, plan.release))
            changed = changed_columns(was, now)
            if changed is not None:
                raise PolicyError(release_problem(plan.release_name, self.job, changed))


def _holds(run: ClassRun, release: Relation) -> bool:
    """Tell whether there is a table of this name where the release goes."""
    return publisher_of(run.session.target).exists(release)


def ranges_warnings(stored: StoredRules, policy: Policy, run: str) -> tuple[str, ...]:
    """The sentence about labels that differ from those of the run whose rules they are, where they do."""
    if policy.from_cut_to_cut or not stored.record.has_boxes:
        return ()
    changed = quoted(a.name for a in stored.attributes if not a.keeps_stand_in)
    if not changed:
        return ()
    return (
        f"Run {run} showed ranges over the values of its classes; its rules show them from cut to cut"
        f" ({', '.join(changed)}), open at the ends, so the same row may show another label. With `ranges: cuts` in"
        " the policy the first release and all later ones show the same.",
    )


def require_same(plan: Plan, stored: StoredRules, engine: str) -> None:
    """Refuse rows whose columns are not those that the rules were made for."""
    if stored.content["dialect"] != engine:
        raise PolicyError(
            f"The rules are of a release by {stored.content['dialect']}, and these rows would be read by {engine}: "
            "load them into the database of that release."
        )
    kinds = {attribute.name: attribute.column.kind for attribute in plan.quasi_identifiers}
    wrong = [
        f"Column '{a.name}' holds values of kind {kinds[a.name]}, and the rules are about {a.kind}; cast it in the"
        " source."
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
