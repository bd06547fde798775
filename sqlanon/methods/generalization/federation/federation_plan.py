"""The plan of a federation: the sites, how they reach each other, and in how many cells they count."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError, field_validator
from pydantic_core import ErrorDetails

from sqlanon.errors import PolicyError
from sqlanon.policy.document import Document, read_document
from sqlanon.policy.part import Number, Part, Whole, broken
from sqlanon.support.documents import read_bounded
from sqlanon.support.suggest import did_you_mean

FEWEST_SITES = 3
_MOST_SITES = 32
_MOST_BYTES = 2**20


class SitePart(Part):
    """One owner of rows, as the others reach it."""

    address: Annotated[str, Field(min_length=3)]
    """Host and port, as `north.example.org:7400`."""
    certificate: str
    """The file with the site's certificate, in PEM; no other certificate is taken from it."""

    @field_validator("address")
    @classmethod
    def _check_address(cls, given: str) -> str:
        host, _, port = given.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
            raise broken("must be a host and a port, as north.example.org:7400.")
        return given

    @property
    def host(self) -> str:
        """The host's name or number; that of IPv6 without its brackets."""
        return self.address.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """The port that the site listens at."""
        return int(self.address.rpartition(":")[2])


class FederationPlan(Part):
    """A whole plan, the same at every site but for addresses and paths of files."""

    sites: dict[str, SitePart]
    """The sites by name, in the same order everywhere; three or more."""
    most_cells: Whole = Field(default=10_000_000, ge=1)
    """The most cells that rows may be counted in: combinations of labels at the least levels of the policy's limits. Of
    a support, the most persons."""
    reveal: Literal["counts", "decision"] = "counts"
    """The figures that sites open to each other: `counts`, the rows that all of them have in each cell; or `decision`,
    of each generalization that is asked the number of rows in classes that are too small, and the classes released."""
    most_nodes: Whole = Field(default=40, ge=1)
    """The most generalizations that are asked, with `reveal: decision`."""
    patience: Number = Field(default=600.0, gt=0)
    """Seconds to wait for another site."""

    @field_validator("sites")
    @classmethod
    def _check_sites(cls, given: dict[str, SitePart]) -> dict[str, SitePart]:
        if not FEWEST_SITES <= len(given) <= _MOST_SITES:
            raise broken(
                f"must name {FEWEST_SITES} to {_MOST_SITES} sites: of two, each learns the other's counts by"
                " subtracting its own."
            )
        for part in ("address", "certificate"):
            if len({getattr(site, part) for site in given.values()}) < len(given):
                raise broken(f"must have another {part} for every site.")
        return given

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the sites, in the order of the plan."""
        return tuple(self.sites)

    def place_of(self, site: str) -> int:
        """Find a site's place among the sites; raises PolicyError where the plan has none of the name."""
        if site not in self.sites:
            raise PolicyError(f"--site: the plan has no site '{site}'; {did_you_mean(site, self.sites)}")
        return self.names.index(site)


def load_plan(path: str | os.PathLike[str]) -> FederationPlan:
    """Read a plan; the files that it names are relative to its directory.

    Raises PolicyError with all that is wrong, AccessError if the file may not be read.
    """
    document = read_document(read_bounded(path, "plan", _MOST_BYTES))
    if not isinstance(document.data, dict):
        raise PolicyError("The plan must be a mapping with the key sites.")
    problems = list(document.problems)
    try:
        plan = FederationPlan.model_validate(document.data)
    except ValidationError as error:
        raise PolicyError([*problems, *(_sentence(detail, document) for detail in error.errors())]) from None
    if problems:
        raise PolicyError(problems)
    base = Path(path).parent
    located = {
        name: site.model_copy(update={"certificate": str(base / Path(site.certificate).expanduser())})
        for name, site in plan.sites.items()
    }
    return plan.model_copy(update={"sites": located})


def _sentence(detail: ErrorDetails, document: Document) -> str:
    """Say what is wrong at a place of the plan, without the value."""
    path = detail["loc"]
    place = document.place(path)
    match detail["type"]:
        case "rule":
            return f"{place} {detail['ctx']['sentence']}"
        case "missing":
            return f"{place} is missing."
        case "extra_forbidden":
            part = SitePart if path[0] == "sites" else FederationPlan
            return f"{place}: unknown key; {did_you_mean(str(path[-1]), part.model_fields)}"
        case "literal_error":
            return f"{place} must be {detail['ctx']['expected']}."
    return f"{place}: {detail['msg'].replace('Input should', 'it should')}."
