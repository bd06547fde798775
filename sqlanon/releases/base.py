"""The one value that runs hang on: a release, as decided and not yet written.

A family of methods adds a kind of release and an algorithm that comes to it. The flow of a run asks a release for what
it needs and looks at nothing else: neither at the search that found it nor at its kind.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from sqlanon.catalog import Catalog
from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.measures.certainty_penalty import Loss
from sqlanon.measures.workload.measures import Measures
from sqlanon.plan.plan import Plan
from sqlanon.releases.rules.store_rules import StoredRules
from sqlanon.results.masking import Masking
from sqlanon.results.measures import Check, Distributions
from sqlanon.results.search_facts import Facts
from sqlanon.sql import Relation
from sqlanon.staging.staging import Staged
from sqlanon.verification.verdict import Verification
from sqlanon.work.session import Session
from sqlanon.work.workspace import Workspace


@dataclass(frozen=True)
class Judged:
    """Rows whose classes the models judge: a relation of a session, and the columns whose values make its classes.

    person: the column whose values are persons, where these are counted. rows: how many rows there are, where the
        relation has one for all equal ones of a person. number: a column that numbers the classes, where there is one.
    published: the staged rows, where models judge these, as the release shows rows of nobody beside those of persons.
    """

    engine: Engine
    relation: Relation
    columns: list[str]
    person: str | None = None
    rows: int | None = None
    number: str | None = None
    published: Relation | None = None

    def of_rows(self, verification: Verification) -> Verification:
        """The result of the check with the number of rows that there are."""
        if self.rows is None or verification.persons is None:
            return verification
        return replace(verification, persons=replace(verification.persons, rows=self.rows))


class Release(ABC):
    """The decisions about the rows of one coded snapshot of a source."""

    @property
    @abstractmethod
    def rounds(self) -> int:
        """Count the rounds of statements that deciding took."""

    @property
    @abstractmethod
    def suppressed(self) -> int:
        """Count the rows that belong to no class, left out of the release or shown with stars."""

    @property
    @abstractmethod
    def omitted(self) -> int:
        """Count the rows of the snapshot that the release does not hold."""

    @property
    def starred_rows(self) -> int:
        """Count the rows that the release shows with stars."""
        return self.suppressed - self.omitted

    @property
    @abstractmethod
    def facts(self) -> Facts:
        """Say what is known of the decision, for people and for JSON."""

    @property
    def lattice(self) -> Mapping[str, Any] | None:
        """Say what is known of the generalization lattice; None where none was searched."""
        return None

    @property
    @abstractmethod
    def shown_columns(self) -> list[str]:
        """Name the columns of the release whose values make its equivalence classes."""

    @abstractmethod
    def stage(
        self, session: Session, plan: Plan, workspace: Workspace, *, replace: bool
    ) -> AbstractContextManager[Staged]:
        """Write the release where nobody sees it yet; what is not published goes with the context."""

    @abstractmethod
    def check_claims(self, engine: Engine, workspace: Workspace, plan: Plan, staged: Staged) -> dict[str, Check]:
        """Check what the release claims of its staged rows, by name, from raw values and policy alone."""

    @contextlib.contextmanager
    def judged(
        self,
        engine: Engine,  # noqa: ARG002
        workspace: Workspace,  # noqa: ARG002
        plan: Plan,
        staged: Staged,
        *,
        whole: bool = False,  # noqa: ARG002
    ) -> Iterator[Judged]:
        """Give the rows whose classes the models judge, and the columns whose values make these.

        whole: whether the rows have all columns of the release.
        """
        yield Judged(staged.engine, staged.final, self.shown_columns, plan.policy.person)

    def measure_masking(self, engine: Engine, workspace: Workspace) -> Masking | None:  # noqa: ARG002
        """Measure loss and risk of released numbers and categories beside those of the source rows they stand for.

        Claims must have been checked before in the same work tables, from which the figures come.
        None where the release shows labels, or nothing says which source row a released one stands for.
        """
        return None

    def keep_rules(self, engine: Engine, catalog: Catalog, workspace: Workspace, run: str) -> StoredRules | None:  # noqa: ARG002
        """Store the rules by which new rows are recoded alike; None where that has no meaning."""
        return None

    def digest_recoding(self, engine: Engine) -> str | None:  # noqa: ARG002
        """Digest what says that another release recodes alike, where no rules do; None where nothing says so."""
        return None

    def measure_loss(self, engine: Engine, unmatched_rows: int) -> Loss | None:  # noqa: ARG002
        """Measure the information loss, `unmatched_rows` more rows suppressed; None where it can't be known."""
        return None

    def measure_prediction(self, engine: Engine, target: str) -> tuple[Measures, Measures] | None:  # noqa: ARG002
        """Measure how well raw and released rows predict a target; None where it can't be known."""
        return None

    def measure_distributions(self, engine: Engine, workspace: Workspace, least: int) -> Distributions | None:  # noqa: ARG002
        """Measure the columns before and after, no bar below `least` rows; None where it can't be known."""
        return None

    def measure_persons(self, engine: Engine, workspace: Workspace) -> Verification:  # noqa: ARG002
        """Measure the classes of a release that is not made by the persons of the source, whom no model judges here.

        Raises PolicyError where a release of this kind tells nothing of its persons.
        """
        raise PolicyError("subject: this release has no rows of persons.")

    @abstractmethod
    def count_labels(self, engine: Engine) -> dict[str, int]:
        """Count the labels that the release shows in place of each quasi-identifier's values."""

    @property
    @abstractmethod
    def classes(self) -> Relation:
        """Name the work table of classes, `(n, region, …)`: rows of regions that look the same are one class."""

    def class_sizes(self, engine: Engine) -> tuple[tuple[int, int], ...]:
        """Count the equivalence classes by their size: pairs of rows in a class, and how many such classes."""
        sizes = engine.query("releases/measure_regions", regions=self.classes)
        return tuple((int(size), int(classes)) for size, classes in sizes)
