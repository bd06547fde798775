"""Registries of the parts that a policy can name, each with the parameters that it takes there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic_core.core_schema import ValidatorFunctionWrapHandler

from sqlanon.policy.part import Part
from sqlanon.support.plugins import find_plugins, load_parameters

Parameters = TypeVar("Parameters", bound=Part)


@dataclass(frozen=True)
class Registry(Generic[Parameters]):
    """The parts of one kind: the program's own by name, and those of installed packages.

    group: of the entry points that add to them; tag: the key of a policy that names one.
    kind: the class that all parameters are derived from.
    """

    group: str
    tag: str
    kind: type[Parameters]
    own: Mapping[str, type[Parameters]]

    def names(self) -> list[str]:
        """List the names of all parts, those of installed packages last."""
        return [*self.own, *(name for name in find_plugins(self.group) if name not in self.own)]

    def parameters_of(self, name: Any) -> type[Parameters] | None:
        """Find the parameters that a part takes; None where there is no part of this name.

        Raises PolicyError where an installed package adds it, but it can't be loaded.
        """
        if not isinstance(name, str):
            return None
        return self.own.get(name) or load_parameters(self.group, name, self.kind)

    def validate(self, given: Any, own: ValidatorFunctionWrapHandler) -> Any:
        """Validate an entry of a policy by the parameters of its part, whoever adds it."""
        name = given.get(self.tag) if isinstance(given, Mapping) else getattr(given, self.tag, None)
        added = None if isinstance(name, str) and name in self.own else self.parameters_of(name)
        return own(given) if added is None else added.model_validate(given)
