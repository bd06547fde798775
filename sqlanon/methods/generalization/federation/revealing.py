"""The parts of a release together that differ by what sites open to each other: its search, and its check."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sqlanon.encoding.frequency.frequency_sets import FrequencySets
from sqlanon.encoding.frequency.lattice import Node
from sqlanon.errors import PolicyError
from sqlanon.methods.generalization.federation.agreement import digest_part
from sqlanon.methods.generalization.federation.cells import PublicCells, PublicHierarchy, require_few
from sqlanon.methods.generalization.federation.party import Counts, Party
from sqlanon.methods.generalization.federation.site_counts import count_classes, count_staged, counts_in
from sqlanon.methods.generalization.lattice.options import full_domain
from sqlanon.methods.generalization.lattice.problem import Problem
from sqlanon.policy import Policy
from sqlanon.results.search_facts import LatticeFacts
from sqlanon.runs.execution import ClassRun
from sqlanon.staging.staging import Staged
from sqlanon.verification.verdict import Verification


@dataclass(frozen=True)
class SharedDecision:
    """The decision that all sites came to.

    cells: of the generalization; kept: those that are classes of the release, by number.
    omitted: the rows of all sites that are left out.
    """

    cells: PublicCells
    kept: tuple[int, ...]
    omitted: int
    facts: LatticeFacts

    @property
    def described(self) -> list[Any]:
        """The levels, and a digest of the labels of the classes: cells of other labels may have the same numbers."""
        places = self.cells.digits(np.array(self.kept, np.int64))
        labels = [[known[place] for place in those] for known, those in zip(self.cells.labels, places, strict=True)]
        return [list(self.cells.node), digest_part([labels, len(self.kept), self.omitted])]


class Revealing(ABC):
    """A site's part of what the sites compute together.

    warning: what a reader of this site's result must know of it; empty for nothing.
    base: the cells at the least levels that the policy allows.
    """

    warning = ""

    def __init__(self, party: Party, hierarchies: Sequence[PublicHierarchy], policy: Policy) -> None:
        """Raises PolicyError where the policy's limits don't fit the hierarchies, or cells are too many."""
        self.party, self.hierarchies = party, hierarchies
        self.names = [one.name for one in hierarchies]
        limits = full_domain(policy).limits
        low = tuple(limits.get(name, (0, 0))[0] for name in self.names)
        beyond = [one.name for one, level in zip(hierarchies, low, strict=True) if level > one.height]
        if beyond:
            raise PolicyError(f"algorithm.limits: the hierarchy of '{beyond[0]}' has no such level.")
        self.base = self.cells(low)
        require_few(self.base, self.names, party.plan.most_cells)

    @abstractmethod
    def search(self, run: ClassRun, problem: Problem) -> SharedDecision:
        """Search together; `problem` is that of this site's own rows.

        Raises ProtectionError where no generalization satisfies the models.
        """

    @abstractmethod
    def verify(self, run: ClassRun, staged: Staged, columns: Sequence[str], decision: SharedDecision) -> Verification:
        """Check the classes of all sites' staged rows, which show labels in `columns`.

        Raises VerificationError where they are not those that were decided on.
        """

    def cells(self, node: Node) -> PublicCells:
        """The cells of a generalization."""
        return PublicCells.at(self.hierarchies, node)

    def count(self, sets: FrequencySets, cells: PublicCells) -> Counts:
        """Count this site's rows in cells."""
        return counts_in(cells, count_classes(sets, cells.node), self.names)


def count_kept(staged: Staged, columns: Sequence[str], decision: SharedDecision) -> Counts:
    """Count this site's staged rows in each class that was decided on, and last those that are in none."""
    wanted = {number: place for place, number in enumerate(decision.kept)}
    return count_staged(staged.engine, staged.final, columns, decision.cells, wanted)
