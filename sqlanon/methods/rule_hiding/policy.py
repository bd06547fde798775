"""Hiding of association rules, as a policy asks for it: the search, and the rules that readers must not mine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field, model_validator

from sqlanon.policy.algorithm_parameters import AlgorithmParameters, Recodes
from sqlanon.policy.model_parameters import ModelParameters
from sqlanon.policy.part import Number, Part, Whole, broken, texts_of

MOST_ITEMS_OF_A_SIDE = 20
MOST_COMPARED = 5  # items of the largest rules that are mined to see what was lost


def _side(given: object) -> object:
    """Take the items of a side: texts of a list, or values by column."""
    if isinstance(given, Mapping):
        texts = texts_of(list(given.values()))
        side: Any = None if texts is None else dict(zip(map(str, given), texts, strict=True))
    else:
        texts = texts_of(given)
        side = None if texts is None or len(set(texts)) < len(texts) else tuple(texts)
    if not side or len(side) > MOST_ITEMS_OF_A_SIDE:
        raise broken(
            f"must have 1 to {MOST_ITEMS_OF_A_SIDE} different items: a list of them where rows are items of"
            " transactions, else a mapping of columns to values."
        )
    return side


Side = Annotated[dict[str, str] | tuple[str, ...], BeforeValidator(_side)]


class HiddenRule(Part):
    """A rule that must not be mined from the release: who has `if` has `then`."""

    if_: Side = Field(alias="if")
    """The left side: items, as `[bread, milk]`, or values by column, as `{job: nurse}`."""
    then: Side
    """The right side, in the same form."""
    support: Whole | None = Field(default=None, ge=1)
    """The support of this rule, in place of the model's."""
    confidence: Number | None = Field(default=None, gt=0, le=1)
    """The confidence of this rule, in place of the model's."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if isinstance(self.if_, dict) is not isinstance(self.then, dict):
            raise broken("must have two lists of items, or two mappings of columns to values.")
        if set(self.if_) & set(self.then):
            raise broken("has an item, or a column, on both sides; it belongs to one.")
        return self

    @property
    def names_columns(self) -> bool:
        """Tell whether items are values of several columns."""
        return isinstance(self.if_, dict)


class HideRules(AlgorithmParameters):
    """Takes single items out of transactions, or single values out of rows, until none of the rules can be mined that
    `hidden-rules` lists; the others stay as far as possible. docs/output.md says more."""

    recodes: ClassVar[Recodes] = Recodes.ITEMS
    sentence: ClassVar[str] = "Single items were taken out, until no rule that had to be hidden could be mined."
    name: Literal["hide-rules"]
    method: Literal["shortest", "border", "exact"] = "shortest"
    """The choice of items: `shortest` takes one of the right side out of the shortest transactions first, rule by rule;
    `border` out of those where the largest sets of up to `most` items that are frequent suffer least;
    `exact` takes out as few items as there can be, of few rules that share few items (the extra `costs`)."""
    transaction: str | None = None
    """The column that tells to which transaction a row belongs, whose rows are its items; none where each row is a
    transaction, and the values of its columns are the items."""
    item: str | None = None
    """The column of the items, with `transaction`."""
    most: int = Field(default=3, strict=True, ge=1, le=MOST_COMPARED)
    """The items of the largest rules that are mined from source and release, to count those that were lost: 3 for two
    on the left side and one on the right; 1 for none."""


class HiddenRulesParameters(ModelParameters):
    """Association rules that the policy names can't be mined: each has less than a support, or than a confidence."""

    is_mechanism: ClassVar[bool] = True
    values_in: ClassVar[tuple[str, ...]] = ("rules",)
    parts_at: ClassVar[Mapping[str, type[BaseModel]]] = {"rules": HiddenRule}
    model: Literal["hidden-rules"]
    support: Whole = Field(ge=1)
    """The least number of transactions, or rows, that have all items of a rule which is mined."""
    confidence: Number = Field(gt=0, le=1)
    """The least share of those with the left side's items who have the right side's, of a rule which is mined."""
    rules: Annotated[tuple[HiddenRule, ...], Field(min_length=1, max_length=200)]
    """The rules to be hidden."""
