"""Privacy models: how the search and verification judge classes by one, whoever adds it.

A model is judged on the *AVS groups* of a partition: how often each sensitive value occurs in each class
(LeFevre, DeWitt, TR 1590, section 2). It gives one SELECT that measures every class; the same definition serves the
search (on codes, in work tables) and verification (on the raw values of the staged release).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from markupsafe import Markup

from sqlanon.engines.columns import Column
from sqlanon.errors import PolicyError
from sqlanon.policy import AttributeSection, ModelParameters
from sqlanon.policy.privacy import without_named_values
from sqlanon.policy.problems import model_problems
from sqlanon.sql import Expression, Relation, Renderer, Statement, macro


@dataclass(frozen=True)
class Groups:
    """The class statistics that a model measures.

    classes: a relation or subquery `(class, n)`: one row a class.
    avs: a relation or subquery `(class, s, n)`: one row a class and sensitive value (NULL has a row like any other, and
        s = 0, which no other value has); None for a model without a sensitive attribute.
    domain: a relation `(s, position, value, n, ...)`: every sensitive value of the whole table once; `s` joins avs
        and is never NULL, `position` is its rank from 0 in value order, `value` a double for numeric attributes
        (NULL elsewhere, or for NULL), `n` its count in the whole table. For an attribute with a hierarchy there are
        also columns g1..gh, the group at each level as an integer, from the leaf's parent up to the single root;
        NULL is in groups of its own below the root.
        Where a model names values there is a column `text` too, the value as text (NULL for NULL).
    height: the number h of those levels (0 without a hierarchy).
    rows: the number of rows of the whole table.
    counted: SQL for that number where it isn't known yet; `rows` is then the most there may be, which types depend on.
    population: a relation `(class, n)`: the rows of the population table that fit each class, if there are any; None
        where no model names such a table.
    """

    classes: Relation | Expression
    avs: Relation | Expression | None
    domain: Relation | Expression | None
    rows: int
    height: int = 0
    counted: Expression | None = None
    population: Relation | Expression | None = None

    @property
    def total(self) -> Expression:
        """The number of rows, as SQL."""
        return self.counted if self.counted is not None else Markup(str(self.rows))


@dataclass(frozen=True)
class Runs:
    """Classes that grow: the statistics of every part that a node's thresholds would cut off.

    A *run* is the node's rows in the order of one attribute, upwards or downwards; its class at size n is the first n
    rows.

    runs: a relation `(run, size, s, n, upto)`: when the class of `run` comes to `size` rows, `n` of the rows that join
        have the sensitive value `s` (0 is NULL), which then occurs `upto` times. Rows with one value of the attribute
        join at once.
    domain, rows, height: as in `Groups`.
    """

    runs: Expression
    domain: Expression
    rows: int
    height: int = 0


@dataclass(frozen=True)
class SampleTest:
    """A test of the hypothesis that a class violates a model, by a sample of its rows.

    template: a SELECT of the classes that do not pass; it gets the candidate splits and the quantiles of the tests, and
    `values`.
    """

    template: str
    values: Mapping[str, Any]


class PrivacyModel(ABC):
    """A privacy model with its parameters.

    A model of another package is a frozen dataclass derived from this class, named in the entry point group
    `sqlanon.guarantees`; it has a class `Parameters`, derived from `ModelParameters`, for policies.
    """

    name: ClassVar[str]
    scope: ClassVar[Literal["class", "table"]] = "class"  # what satisfies or violates it; see `table_model` for tables
    attribute: str | None  # the sensitive attribute it looks at
    decided_by_size: ClassVar[bool] = False  # a class satisfies it exactly if it has `least_rows` rows
    needs_hierarchy: ClassVar[bool] = False  # it measures along the hierarchy of its attribute
    needs_solver: ClassVar[bool] = False  # `measure` leaves classes open, which are solved outside of the database
    counts_null_by_policy: ClassVar[bool] = False  # whether NULL is a value to it is for the policy to say
    holds_sets: ClassVar[bool] = False  # a person's classes must show the same set of values in all releases
    judges_shares: ClassVar[bool] = False  # by shares of a class's sensitive values alone: persons may have several
    monotone_under_generalization: ClassVar[bool]  # merging classes that satisfy it gives one that does
    monotone_under_suppression: ClassVar[bool]  # leaving whole classes out can't break the remaining ones
    closed_under_union: ClassVar[bool] = False  # a class that satisfies it does so whatever rows join it

    @classmethod
    def from_parameters(cls, parameters: ModelParameters, *, counts_null: bool) -> PrivacyModel:
        """Make the model that a policy asks for.

        counts_null: whether the policy takes NULL for a value of its attribute.
        """
        given = parameters.shown()
        del given["model"]
        return cls(**given, **({"counts_null": counts_null} if cls.counts_null_by_policy else {}))

    def __post_init__(self) -> None:
        """Raise PolicyError where a parameter is not what the grammar of policies allows."""
        if wrong := model_problems(self.name, self.parameters):
            raise PolicyError(wrong)

    @property
    def population_table(self) -> str | None:
        """The table of all who could be in the release, by whose rows classes are judged; None for none."""
        return getattr(self, "population", None)

    @property
    def covers_population(self) -> bool:
        """Tell whether all rows of the population must fit a class of the release, so that none may be suppressed."""
        return False

    @property
    def known_rows(self) -> int | None:
        """The rows of a person that somebody may know, where a person's classes are judged together; None elsewhere.

        Such a model judges classes one by one like others, and then sets of so many classes of a person at most. Only
        algorithms that say `joins_rows` take it.
        """
        return None

    @property
    def least_rows(self) -> int:
        """A class with fewer rows violates the model, whatever is in it."""
        return 1

    @property
    def promised_rows(self) -> int | None:
        """The rows that the model promises of every class, as the k of k-anonymity; None where it promises none."""
        return None

    @property
    def named_values(self) -> tuple[str, ...]:
        """The texts of the values of its attribute that the model tells from others; it gets the texts of all."""
        return ()

    @property
    def needs_texts(self) -> bool:
        """Tell whether it gets the texts of the values of its attribute."""
        return bool(self.named_values)

    @property
    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """The parameters by their names in the policy."""

    @property
    def shown_parameters(self) -> dict[str, Any]:
        """The same for records, reports and messages: without the values that the model names."""
        shown = without_named_values({"model": self.name, **self.parameters})
        del shown["model"]
        return shown

    @property
    @abstractmethod
    def sentence(self) -> str:
        """The promise of the model to readers of a report, as one plain sentence about its classes."""

    def by_rows(self, person: str) -> PrivacyModel | None:  # noqa: ARG002
        """Restate the model of persons as one that judges the same of classes whose rows are counted.

        person: the attribute whose values are the persons; NULL is another one in each row.
        None where that can't be said: the model then needs a search that counts persons.
        """
        return None

    def problems(self, column: Column | None, attribute: AttributeSection | None, rows: int | None) -> Iterator[str]:  # noqa: ARG002
        """List the reasons why the model can't be asked of a table.

        column, attribute: of the sensitive attribute, as the table and the policy have them; None without one.
        rows: the number of rows of the table; None where it is a part of what is released together.
        """
        yield from ()

    def known_values(self) -> tuple[str, ...] | None:
        """The texts of the values that the model can judge; None where it judges all, or can't tell."""
        return None

    def lacking_values(self, values: int) -> str:
        """The problem that so many values of its attribute are not among those that it knows."""
        raise NotImplementedError(f"{self.name} judges all values.")

    def warnings(self) -> Iterator[str]:
        """List what is allowed, but may not be meant."""
        yield from ()

    @abstractmethod
    def measure(self, render: Renderer, groups: Groups) -> Statement:
        """A SELECT `(class, measure, violates, …)`: one row a class, the model's measure as a double, and a boolean.

        Further columns are for `min_suppressed` alone.
        """

    def list_open(self, render: Renderer, groups: Groups, *, worst: bool = False) -> Statement:
        """A SELECT of what the classes hold that `measure` leaves open, for `solve`; of models that need a solver.

        worst: whether the worst measure must be exact, and not only each verdict.
        """
        raise NotImplementedError(f"{self.name} leaves no class open.")

    def solve(self, listed: Sequence[Sequence[Any]], *, worst: bool = False) -> PrivacyModel:
        """Return the same model, whose `measure` knows the classes that `list_open` listed; see there for `worst`."""
        raise NotImplementedError(f"{self.name} leaves no class open.")

    def measure_prefixes(self, render: Renderer, runs: Runs) -> Statement:
        """A SELECT `(run, size, violates)`: whether the class of a run violates the model at that size.

        It need not decide everything: `violates` is NULL where only `measure` can tell, as for a figure within rounding
        of the parameter. By default it decides nothing.
        """
        return render("models/measure_prefixes_nothing", runs=runs.runs)

    @property
    def testable(self) -> bool:
        """Tell whether classes can be checked by a sample of their rows (see `sample_test`)."""
        return self.decided_by_size or type(self).sample_test is not PrivacyModel.sample_test

    def sample_test(self, render: Renderer, groups: Groups) -> SampleTest | None:  # noqa: ARG002
        """Test classes by a sample of their rows; None where whatever the sampled rows show is true of all rows.

        Models are asked only if they are `testable`: the plan refuses others where an algorithm takes samples. Raises
        PolicyError for a model without such a test.
        """
        raise PolicyError(f"{self.name} can't be checked on a sample of rows; choose an algorithm that takes none.")

    def implies_violation(self) -> Expression | None:
        """SQL over two classes of one run, of `z.n` and `o.n` rows: whether `z`, which violates the model by its
        measure `z.measure`, shows that `o` does too. None where it never does.
        """
        return None

    def min_suppressed(self) -> Expression:
        """Write the number of rows that every division of a violating class must suppress.

        SQL over the class `x`, which violates the model, and its measure `m`; 0 where nothing is known.

        Classes are left out if they violate the model in the whole table, and more of them as long as what is left
        makes others violate it. So what stays of a divided class satisfied the model in the whole table, class by
        class, however the table changes by what is left out: where merging classes that satisfy the model gives one
        that does, at least a row must go, and all of them if no part of a violating class satisfies the model.
        """
        if self.closed_under_union:
            return macro("models.all_rows")
        return Markup(1 if self.monotone_under_generalization else 0)

    @abstractmethod
    def worst_of(self, measures: tuple[float, float]) -> float:
        """The worst of the least and the greatest measure over the classes."""

    @abstractmethod
    def is_met_by(self, worst: float, rows: int) -> bool | None:
        """Tell whether the classes of a table of `rows` satisfy the model when their worst measure is `worst`.

        The arithmetic is independent of `measure`: whoever believes the violations that `measure` reports is to ask
        this method too. False where `worst` is no number. The answer is as exact as that of `measure`; None where
        `measure` goes by digits which `worst` has lost.
        """

    @abstractmethod
    def attainable(self, measure: float) -> str:
        """Name the value that the whole table taken as one class would satisfy, in the policy's words (`k: 17`)."""

    def unmet(self, measure: float) -> str:
        """Say that no release can meet the model, as the whole table taken as one class does not."""
        wanted = ", ".join(f"{key}: {value}" for key, value in self.shown_parameters.items())
        return (
            f"No release can meet {self.name} ({wanted}): the whole table taken as one class doesn't. "
            f"Attainable: {self.attainable(measure)}."
        )


def relation(part: Relation | Expression | None) -> Relation | Expression:
    """A part of `Groups` that a model needs; a missing one is a mistake of the caller."""
    if part is None:
        raise ValueError("The model looks at a sensitive attribute or a population, but the groups hold none.")
    return part
