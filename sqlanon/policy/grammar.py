"""A whole policy."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field

from sqlanon.policy.algorithms import Algorithm, default_algorithm
from sqlanon.policy.attributes import AttributeSection, Role
from sqlanon.policy.differential_privacy import PrivacyBudget, mechanism_of
from sqlanon.policy.history import HistorySection
from sqlanon.policy.locations import CatalogSection, ReleaseSection, Source
from sqlanon.policy.part import Number, Part
from sqlanon.policy.population_models import PopulationPlace
from sqlanon.policy.privacy import Model, populations_elsewhere


class Policy(Part):
    """A whole policy, as `policy.yml` holds it."""

    source: Source
    """The microdata table."""
    release: ReleaseSection
    """The place of the release."""
    attributes: dict[str, AttributeSection] = Field(min_length=1)
    """Every column of the table, by its exact name, without quotes, and with its role. On PostgreSQL a column that was
    made without quotes has a name of lower case. Columns are named so wherever a policy names them."""
    privacy: tuple[Model, ...] = Field(default=(), min_length=1)
    """The models that every class must satisfy, all of them. Every algorithm but `masking` needs one."""
    algorithm: Algorithm = Field(default_factory=default_algorithm)
    """The algorithm that searches for the release."""
    budget: PrivacyBudget | None = None
    """The privacy budget that a release of differential privacy is charged on; without one, `run` refuses it."""
    suppression: Number = Field(default=0.0, ge=0, lt=1)
    """The largest share of rows that may be left out."""
    remainder: Literal["suppress", "recode"] = "suppress"
    """The treatment of rows in violating classes by full-domain generalization: it leaves them out (`suppress`), or
    generalizes them again among themselves, further up (`recode`)."""
    suppressed: Literal["omit", "star", "star: unprotected"] = "omit"
    """The treatment of suppressed rows: left out, or shown with `*` for every quasi-identifier. Rows of stars are a
    class that a reader sees, so with `star` they satisfy every model like any other class: further classes are starred
    until they do, or nothing is published. With `{star: unprotected}` they need not, and every verdict says so."""
    ranges: Literal["observed", "cuts"] = "observed"
    """The reach of ranges shown by a search that cuts a table in parts (mondrian, rothko-t, rothko-s): `observed`, over
    the values of the class; `cuts`, from cut to cut of the tree, so that rows that the rules are applied to later show
    the same labels."""
    republish: Literal["allow", "same-recoding"] | None = None
    """Releases of the source by other rules than before. `same-recoding`: refused, by this policy and, once it has
    released the source, by any other; `apply` and jobs with the rules of a release go on. `allow`: published, with a
    warning, whatever policies of earlier releases say. If not given: as `allow`, unless one of these says
    `same-recoding`."""
    digest: Literal["run", "record"] = "record"
    """The time at which the release is digested for its record: in the `run`, before it is published; or when the
    `record` is written, which costs runs nothing, and can't tell of changes before that."""
    subject: Annotated[str, Field(min_length=1)] | None = None
    """The persons behind the rows. The name of an identifier, whose values are persons: models count persons, of whom a
    class must hold k, and a sensitive value occurs as often as persons have it. `none`: rows are counted and protected,
    whoever they are about. It must be given where an identifier repeats, or may not be looked at."""
    people: Annotated[str, Field(min_length=1)] | None = None
    """The people whom the release is about, by a name of your choice: releases with the same name are entered in one
    account; see `history`. If not given, they are those of the source's table, or of the only table beneath a view; a
    view of several tables needs a name."""
    history: HistorySection = HistorySection()
    """The account of all releases about the same people, and the treatment of a release that would tell too few of them
    from all others, together with the earlier ones."""
    trust: Literal["owner"] | None = None
    """Code that may run when the source is read, on PostgreSQL, with the rights of the role that reads. `owner`: code
    of the source's owner, too. Else only code of superusers, of the database's owner and of the role itself."""
    catalog: CatalogSection = CatalogSection()
    """The database and schema in which runs are recorded."""

    @property
    def from_cut_to_cut(self) -> bool:
        """Tell whether ranges are shown from cut to cut of a tree, and not over the values of classes."""
        return self.ranges == "cuts" or self.algorithm.shows_cuts

    @property
    def person(self) -> str | None:
        """The attribute whose values are the persons that models count; None where they count rows."""
        return None if self.subject == "none" else self.subject

    @property
    def released_person(self) -> str | None:
        """The attribute whose values are the persons of the release; None where its rows are persons, or are counted.

        An account of releases is kept for tables of one row a person alone.
        """
        return None if self.history.is_kept else self.person

    @property
    def hides_person(self) -> bool:
        """Tell whether persons are counted, and the release shows nothing that tells them apart."""
        person = self.released_person
        attribute = None if person is None else self.attributes.get(person)
        return attribute is not None and not attribute.show.is_mask

    @property
    def population(self) -> str | None:
        """The population table that models judge classes by; the first, where they name several."""
        return next((one.population_table for one in self.privacy if one.population_table is not None), None)

    @property
    def population_elsewhere(self) -> PopulationPlace | None:
        """The place of that table, where it is in another database than the source's."""
        places = populations_elsewhere(self.privacy).values()
        return next((place for place in places if str(place) == self.population), None)

    @property
    def is_private(self) -> bool:
        """Tell whether the release is drawn by mechanisms of differential privacy."""
        return mechanism_of(self.privacy) is not None

    def suppressible(self, rows: int) -> int:
        """Count the rows that may be left out, of a table of so many."""
        return int(Decimal(str(self.suppression)) * rows)

    @property
    def stars(self) -> bool:
        """Tell whether suppressed rows are shown."""
        return self.suppressed != "omit"

    @property
    def exempts_stars(self) -> bool:
        """Tell whether suppressed rows that are shown need not satisfy the models."""
        return self.suppressed == "star: unprotected"

    @property
    def judges_stars(self) -> bool:
        """Tell whether suppressed rows are shown, and must satisfy the models as one class."""
        return self.stars and not self.exempts_stars

    @property
    def sensitive(self) -> list[str]:
        """The names of the sensitive attributes, protected by a model or not."""
        return [name for name, attribute in self.attributes.items() if attribute.role is Role.SENSITIVE]

    @property
    def target(self) -> str | None:
        """The attribute that the algorithm keeps predictable, if it has one."""
        return getattr(self.algorithm, "target", None)
