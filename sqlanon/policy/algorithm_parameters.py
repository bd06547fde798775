"""The search of a policy, and what other parts ask of any search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import BaseModel, PrivateAttr

from sqlanon.policy.attributes import AttributeSection, Hierarchy, Show
from sqlanon.policy.part import Part

if TYPE_CHECKING:
    from sqlanon.policy.grammar import Policy


class Recodes(StrEnum):
    """The kind of recoding that a search comes to."""

    REGIONS = "regions"  # of a partition tree, which may overlap in any one column
    LEVELS = "levels"  # one level of its hierarchy for each column; rows may be suppressed
    CUTS = "cuts"  # each branch of a hierarchy at a level of its own
    INTERVALS = "intervals"  # of single columns, the same for all rows
    CLUSTERS = "clusters"  # groups of similar rows, shown by their centres
    CELLS = "cells"  # single cells shown as `*`, or generalized
    COUNTS = "counts"  # noisy counts of the cells of a public domain
    NOISE = "noise"  # rows whose values were changed at random
    ITEMS = "items"  # transactions, or rows, without single items
    ROWS = "rows"  # rows as they are, without identifiers

    @property
    def makes_classes(self) -> bool:
        """Tell whether the release shows classes of rows, which a search finds."""
        return self not in (Recodes.COUNTS, Recodes.NOISE, Recodes.ITEMS, Recodes.ROWS)


class AlgorithmParameters(Part):
    """A search as a policy asks for it: its name, and its options."""

    name: str
    recodes: ClassVar[Recodes]
    takes_models: ClassVar[bool] = True
    """False if the release is judged by no model, so that its policy asks for none."""
    exhaustive: ClassVar[bool] = False
    """True if the search may have to check every generalization of a lattice."""
    stops_early: ClassVar[bool] = False
    """True if the search knows, at any time, the best release so far."""
    samples: ClassVar[bool] = False
    """True if models must be testable on samples of the rows."""
    counts_persons: ClassVar[bool] = False
    """True if the search counts persons, of whom each may have several rows; others count rows, and see whose they
    are."""
    judges_tables: ClassVar[bool] = False
    """True if the search knows the sizes of all classes of every candidate, by which models judge a whole release."""
    joins_rows: ClassVar[bool] = False
    """True if the search merges or leaves out classes that would tell too much of a person together."""
    holds_sets: ClassVar[bool] = False
    """True if classes of a person show the same set of sensitive values as in earlier releases."""
    numbers_classes: ClassVar[bool] = False
    """True if a column of the release numbers its classes, of which several may have the same labels."""
    merges_rows: ClassVar[bool] = False
    """True if the release has one row for all rows of a person that show the same."""
    releases_clusters: ClassVar[bool] = False
    """True if the release has a row for each cluster, and a second table of the values of each."""
    draws_numbers: ClassVar[bool] = False
    """True if the release has synthetic rows, which need quasi-identifiers that are numbers."""

    shows_cuts: ClassVar[bool] = False
    """True if the release shows ranges from cut to cut, whatever the policy says of `ranges`."""

    has_wildcards: ClassVar[bool] = False
    """True if `*` in the release fits any value, so that models judge the rows that fit each row."""

    hides_classes: ClassVar[str] = ""
    """The reason why readers of the published table do not see the classes that models judge; empty where they do."""

    sentence: ClassVar[str] = ""
    """The search, explained for readers of reports."""

    choices_at: ClassVar[Mapping[str, Mapping[str, type[BaseModel]]]] = {}
    """The parts of the grammar that each entry of a mapping is one of, by the key of the mapping and a key of the
    part."""

    files_at: ClassVar[Mapping[str, str]] = {}
    """The key that names a file in entries of a mapping, by the key of the mapping."""

    _is_within: bool = PrivateAttr(default=False)

    @property
    def is_within(self) -> bool:
        """Tell whether rows are classed within the classes of rows of other tables, which say enough of them."""
        return self._is_within

    def within(self) -> Self:
        """Return the same parameters for rows that are classed within the classes of rows of other tables."""
        other = self.model_copy()
        other._is_within = True
        return other

    def entries_with_files(self) -> Iterator[tuple[str, str, Part, str]]:
        """List the entries that name files: the key of the mapping, that of the entry, the entry, the file's key."""
        for mapping, key in self.files_at.items():
            for name, entry in getattr(self, mapping).items():
                if getattr(entry, key, None) is not None:
                    yield mapping, name, entry, key

    def problems(self, quasi: Sequence[str]) -> Iterator[str]:  # noqa: ARG002
        """Say what is wrong with the parameters for these quasi-identifiers."""
        return iter(())

    def quasi_problems(self, attribute: AttributeSection) -> Iterator[str]:  # noqa: ARG002
        """Say what is wrong with one quasi-identifier."""
        return iter(())

    def hierarchy_of(self, attribute: AttributeSection) -> Hierarchy | None:
        """Tell the hierarchy by which an attribute is recoded; None for none."""
        return attribute.hierarchy

    @property
    def combined(self) -> Mapping[int, int]:
        """Numbers of quasi-identifiers, each with the rows that must fit in any combination of so many alone."""
        return {}

    def show_of(self, attribute: AttributeSection, is_numeric: bool) -> Show:  # noqa: ARG002
        """Tell the form in which the release shows an attribute of a column of numbers, or of others."""
        return attribute.show

    @property
    def predicts(self) -> Literal["classes", "numbers"] | None:
        """The kind of target that the search needs; None for searches without a target."""
        return None

    @property
    def counted_target(self) -> str | None:
        """Name the attribute whose values the search counts in every group; None for a search that counts none."""
        return None

    @property
    def stratified_by(self) -> str | None:
        """Name the attribute of whose values no class mixes two; None where classes may."""
        return None

    def size_problems(self, rows: int) -> Iterator[str]:  # noqa: ARG002
        """Say when the search can't take a table of so many rows."""
        yield from ()

    def step_problems(self, steps: Mapping[str, int]) -> Iterator[str]:  # noqa: ARG002
        """Say when the search can't take so many steps up the hierarchies of quasi-identifiers, `*` being the last."""
        yield from ()

    def height_problems(
        self,
        policy: Policy,  # noqa: ARG002
        heights: Mapping[str, int],  # noqa: ARG002
        warnings: list[str],  # noqa: ARG002
    ) -> Iterator[str]:
        """Say when the search can't take hierarchies of these heights, by attribute; add warnings of a long search."""
        yield from ()

    @property
    def limited_cuts(self) -> int | None:
        """The most cuts of a column, where the search takes only so many of all columns; None where it takes any."""
        return None

    def cut_problems(self, counts: Mapping[str, int]) -> Iterator[str]:  # noqa: ARG002
        """Say when the search can't choose among so many cuts of each column."""
        yield from ()

    def rows_of(self, k: int) -> int:
        """Count the rows of the smallest class that the search makes, where classes need k."""
        return k

    @property
    def kept_statistic(self) -> Literal["variance"] | None:
        """Name what the centres of numbers are rescaled to keep."""
        return None

    @property
    def releases_rows(self) -> bool:
        """Tell whether a row of the release is a row of the source, and so of a person."""
        return not (self.releases_clusters or self.draws_numbers or self.recodes is Recodes.COUNTS)

    @property
    def leaves_rules(self) -> bool:
        """Tell whether new rows can be recoded alike by the rules of a release."""
        return self.recodes not in (Recodes.CLUSTERS, Recodes.CELLS)

    @property
    def regions_overlap(self) -> bool:
        """Tell whether values do not say in which class a row is, as equal rows may be in several."""
        return False

    @property
    def suppresses(self) -> bool:
        """Tell whether rows may be left without a class."""
        return self.recodes is Recodes.LEVELS or self.is_within

    @property
    def refines(self) -> bool:
        """Tell whether clusters are refined."""
        return False

    @property
    def takes_hierarchies(self) -> bool:
        """Tell whether quasi-identifiers may have hierarchies."""
        return True

    @property
    def needs_hierarchies(self) -> bool:
        """Tell whether every quasi-identifier must have a hierarchy."""
        return self.recodes in (Recodes.LEVELS, Recodes.CUTS)
