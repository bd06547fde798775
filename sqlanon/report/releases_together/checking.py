"""Groups of persons with the same classes in several releases: nobody can tell them apart who holds all of these."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from sqlanon.catalog import Catalog, Run
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.embedded import MEMORY_URL
from sqlanon.engines.files import directory_of, is_data_file
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import PolicyError
from sqlanon.models import models_of
from sqlanon.plan.history import k_of_history
from sqlanon.plan.plan import resolve_source
from sqlanon.plan.trust import reading
from sqlanon.policy import Policy
from sqlanon.releases.rules.store_rules import StoredRules
from sqlanon.report.releases_together.labelled import open_labelled
from sqlanon.report.releases_together.persons import ReleasePersons, SourcePersons, code_persons
from sqlanon.report.releases_together.recorded import recoded_persons
from sqlanon.results.measures import ModelResult
from sqlanon.runs.recoded_again import require_rules
from sqlanon.sql import Identifier, Relation, free_name
from sqlanon.verification.model_hierarchies import checked_hierarchies
from sqlanon.verification.verify import verify_table
from sqlanon.work.session import open_existing_catalog
from sqlanon.work.workspace import TemporaryWorkspace

_LIKE_A_RUN = re.compile(r"[0-9a-f-]+")


@dataclass(frozen=True)
class TogetherGroups:
    """Persons of some releases, grouped by their classes in all of these.

    releases: their names. smallest: the persons of the smallest group; below_k: those in groups of fewer than k.
    """

    releases: tuple[str, ...]
    persons: int
    groups: int
    smallest: int
    below_k: int


@dataclass(frozen=True)
class Together:
    """Groups of persons by several releases, and how they stand to k and to models.

    k: the least persons of a group. releases: their persons. all_groups: by all of them together; each: by one alone;
    pairs: by each two, the worst first. models: how models of sensitive values stand in the groups by all.
    """

    k: int
    releases: tuple[ReleasePersons, ...]
    all_groups: TogetherGroups
    each: tuple[TogetherGroups, ...]
    pairs: tuple[TogetherGroups, ...]
    models: tuple[ModelResult, ...]

    @property
    def satisfied(self) -> bool:
        """Tell whether every group has k persons, and satisfies the models."""
        return not self.all_groups.below_k and all(one.satisfied for one in self.models)

    def as_json(self) -> dict[str, Any]:
        """One object of plain values, as `sqlanon account check --json` prints it."""
        names = ("name", "kind", "persons", "ambiguous", "omits")
        return {
            "k": self.k,
            "releases": [{name: getattr(one, name) for name in names} for one in self.releases],
            "together": asdict(self.all_groups),
            "each": [asdict(one) for one in self.each],
            "pairs": [asdict(one) for one in self.pairs],
            "models": [asdict(one) for one in self.models],
            "satisfied": self.satisfied,
        }


def check_releases(policy: Policy, names: Sequence[str], options: EngineOptions | None = None) -> Together:
    """Group the persons of a policy's source by their classes in all of some releases. Nothing is changed.

    names: runs of the policy's catalog, and tables or files of releases, whatever made them; two or more.

    Raises PolicyError for an unknown release, for one whose persons can't be known, for a source that has changed.
    """
    k = k_of_history(policy)
    if k < 2:
        raise PolicyError("history.k: no model has a k of 2 or more; say the least number of persons of a group.")
    if len(set(names)) < 2:
        raise PolicyError("Name two releases or more: runs of the catalog, tables, or files.")
    options = options or EngineOptions()
    with _opened(policy, names, options) as (engine, catalog):
        runs = {name: _rules_of(catalog, name) for name in names if _is_run(engine, name)}
        with contextlib.ExitStack() as stack:
            stack.enter_context(engine.undone())
            return _Checking(engine, catalog, policy, options, k, stack).check(names, runs)


_Recorded = tuple[Run, StoredRules]


@dataclass(frozen=True)
class _Checking:
    """A check on its way, in one transaction that is undone; `stack` holds what it has opened."""

    engine: Engine
    catalog: Catalog | None
    policy: Policy
    options: EngineOptions
    k: int
    stack: contextlib.ExitStack

    def check(self, names: Sequence[str], runs: dict[str, _Recorded]) -> Together:
        engine, workspace = self.engine, TemporaryWorkspace(self.engine)
        plan = resolve_source(self.policy, engine)
        self.stack.enter_context(reading(engine, plan.source, trusts_owner=self.policy.trust == "owner"))
        source = code_persons(engine, workspace, plan)
        releases = []
        for place, name in enumerate(names):
            part = workspace.part(f"release_{place}")
            if name in runs:
                assert self.catalog is not None
                releases.append(recoded_persons(engine, part, self.catalog, *runs[name], self.policy))
            else:
                opened = open_labelled(engine, part, self.policy, source, name, self.options)
                releases.append(self.stack.enter_context(opened))
        together = workspace.table("together")
        engine.run(
            "report/releases_together/join_releases", together=together, members=[one.members for one in releases]
        )
        engine.analyze(together)
        return self._measure(together, source, releases, workspace.table("judged"))

    def _measure(
        self, together: Relation, source: SourcePersons, releases: Sequence[ReleasePersons], judged: Relation
    ) -> Together:
        every = range(len(releases))
        names = [one.name for one in releases]

        def groups(places: Sequence[int]) -> TogetherGroups:
            classes = [Identifier(f"c{place}") for place in places]
            figures = self.engine.query_one(
                "report/releases_together/measure_groups", together=together, classes=classes, k=self.k
            )
            return TogetherGroups(tuple(names[place] for place in places), *map(int, figures))

        pairs = [groups(pair) for pair in itertools.combinations(every, 2)]
        return Together(
            self.k,
            tuple(releases),
            groups(every),
            tuple(groups([place]) for place in every),
            tuple(sorted(pairs, key=lambda one: (-one.below_k, one.smallest))),
            self._verify_models(together, source, len(releases), judged),
        )

    def _verify_models(
        self, together: Relation, source: SourcePersons, count: int, judged: Relation
    ) -> tuple[ModelResult, ...]:
        """Hold the models of sensitive values to the groups by all releases."""
        models = [model for model in models_of(self.policy) if model.attribute is not None]
        if not models:
            return ()
        group = free_name("signature", [name for name, _ in source.values])
        self.engine.run(
            "report/releases_together/create_judged",
            judged=judged,
            together=together,
            classes=[Identifier(f"c{place}") for place in range(count)],
            group=group,
            person=source.person(self.engine),
            values=[{"name": Identifier(name), "column": column} for name, column in source.values],
            witness=source.coded.witness,
        )
        with checked_hierarchies(self.engine, self.policy, models, judged) as hierarchies:
            return verify_table(self.engine, judged, [group.name], models, hierarchies=hierarchies).models


@contextlib.contextmanager
def _opened(policy: Policy, names: Sequence[str], options: EngineOptions) -> Iterator[tuple[Engine, Catalog | None]]:
    """The session with the source's database, and the catalog, where a name may be that of a run."""
    files = [name for name in (policy.source.file, *names) if name is not None and is_data_file(name)]
    places = None if any("://" in file for file in files) else tuple(str(directory_of(file)) for file in files)
    with connect(policy.source.url or MEMORY_URL, replace(options, places=places)) as engine:
        if not any(map(_LIKE_A_RUN.fullmatch, names)):
            yield engine, None
            return
        with open_existing_catalog(policy, engine, options) as catalog:
            yield engine, catalog


def _is_run(engine: Engine, name: str) -> bool:
    """Tell whether a name is that of a run: a table of this name goes first."""
    return _LIKE_A_RUN.fullmatch(name) is not None and engine.resolve(Relation.parse(f'"{name}"')) is None


def _rules_of(catalog: Catalog | None, name: str) -> _Recorded:
    if catalog is None:
        raise PolicyError(f"There is no table {name}, and no run is recorded here.")
    recorded = catalog.run(name)
    return recorded, require_rules(catalog, recorded)
