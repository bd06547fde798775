"""Registries of the parts that a policy can name, with their parameters, and as choices for people."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel
from pydantic_core import PydanticKnownError

from sqlanon.policy.part import Part
from sqlanon.support.methods import Method, added_method, own_methods
from sqlanon.support.plugins import find_plugins, load_parameters, package_of

Parameters = TypeVar("Parameters", bound=Part)


TAGS = ("model", "name")  # the keys that name a part, which are no parameters of it


@dataclass(frozen=True)
class Registry(Generic[Parameters]):
    """The parts of one kind: those of all policies by name, those of methods, and those of installed packages.

    group: of the entry points that add to them; tag: the key of a policy that names one.
    kind: the class that all parameters are derived from.
    of_method: gives the parts of this kind that a method adds, by name.
    """

    group: str
    tag: str
    kind: type[Parameters]
    own: Mapping[str, type[Parameters]]
    of_method: Callable[[Method], Mapping[str, str]]

    def own_names(self) -> list[str]:
        """List the names of the program's own parts."""
        return [*self.own, *(name for method in own_methods() for name in self.of_method(method))]

    def names(self) -> list[str]:
        """List the names of all parts, those of installed packages last."""
        return list(dict.fromkeys((*self.own_names(), *find_plugins(self.group))))

    def parameters_of(self, name: Any) -> type[Parameters] | None:
        """Find the parameters that a part takes; None where there is no part of this name.

        Raises PolicyError where an installed package adds it, but it can't be loaded.
        """
        if not isinstance(name, str):
            return None
        if name in self.own:
            return self.own[name]
        own = next((method for method in own_methods() if name in self.of_method(method)), None)
        method = own or added_method(self.group, name)
        if method is not None:
            return method.load_class(self.of_method(method), name, self.kind)
        return load_parameters(self.group, name, self.kind)

    def own_parameters(self) -> dict[str, type[Parameters]]:
        """Load the parameters of all of the program's own parts, by name."""
        loaded = ((name, self.parameters_of(name)) for name in self.own_names())
        return {name: parameters for name, parameters in loaded if parameters is not None}

    def validate(self, given: Any) -> Any:
        """Validate an entry of a policy by the parameters of its part, whoever adds it."""
        if isinstance(given, self.kind):
            return given
        if not isinstance(given, Mapping):
            raise PydanticKnownError("model_attributes_type")
        if self.tag not in given:
            raise PydanticKnownError("union_tag_not_found", {"discriminator": self.tag})
        parameters = self.parameters_of(given[self.tag])
        if parameters is None:
            tags = {"discriminator": self.tag, "tag": str(given[self.tag]), "expected_tags": ", ".join(self.names())}
            raise PydanticKnownError("union_tag_invalid", tags)
        return parameters.model_validate(given)


@dataclass(frozen=True)
class Choice:
    """A part that policies can name: its name there, its parameters, its meaning, and the package that adds it."""

    name: str
    parameters: list[str]
    meaning: str
    package: str


def describe_choices(
    group: str, names: Iterable[str], own: Collection[str], parameters_of: Callable[[str], type | None]
) -> list[Choice]:
    """Describe the parts of a kind, of which the program has its own, by the class of the parameters that they take.

    A part without parameters is described by its own class.

    Raises PolicyError where one of them can't be loaded.
    """
    described = []
    for name in names:
        parameters = parameters_of(name)
        assert parameters is not None
        meaning = " ".join((inspect.getdoc(parameters) or "").partition("\n\n")[0].split())
        package = "sqlanon" if name in own else package_of(find_plugins(group)[name])
        fields = getattr(parameters, "model_fields", {})
        keys = [info.alias or key for key, info in fields.items() if key not in TAGS]
        described.append(Choice(name, keys, meaning, package))
    return described


class ModelParameters(Part):
    """A privacy model as a policy asks for it: its name under `model`, and its parameters."""

    model: str
    is_mechanism: ClassVar[bool] = False
    """True if the protection is in how the release is drawn, so that no class can be judged by it."""
    values_in: ClassVar[tuple[str, ...]] = ()
    """The parameters that name values of the data, which records, reports and messages do not show."""
    k_in: ClassVar[str | None] = None
    """The parameter that is the least size of every class, as the k of k-anonymity, which sweeps change."""

    parts_at: ClassVar[Mapping[str, type[BaseModel]]] = {}
    """The parts of the grammar that values are of, or entries of a list, by their keys."""

    @property
    def population_table(self) -> str | None:
        """The table of all who could be in the release, where the model judges by it: its name, as people read it."""
        population = getattr(self, "population", None)
        return None if population is None else str(population)

    def shown(self) -> dict[str, Any]:
        """The model and its parameters as people read them: of a population its name, which has no password."""
        given = self.model_dump()
        return given if self.population_table is None else given | {"population": self.population_table}

    @property
    def sensitive(self) -> str | None:
        """The sensitive attribute that the model looks at; None where it looks at sizes of classes alone."""
        return getattr(self, "attribute", None)
