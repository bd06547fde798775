"""Hiding of association rules: the search, the rules to hide, and the rules between a policy's keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field, model_validator

from sqlanon.policy.algorithm_parameters import AlgorithmParameters, Recodes
from sqlanon.policy.attributes import Role
from sqlanon.policy.document import Path
from sqlanon.policy.grammar import Policy
from sqlanon.policy.part import Number, Part, Whole, broken, texts_of
from sqlanon.policy.registry import ModelParameters
from sqlanon.policy.unused import WithoutClasses
from sqlanon.support.suggest import did_you_mean

MOST_ITEMS_OF_A_SIDE = 20


MOST_COMPARED = 5  # items of the largest rules that are mined to see what was lost


_PARTS = WithoutClasses(
    algorithm="hide-rules",
    model="hidden-rules",
    release="a release with hidden rules",
    file="a table is released; export it afterwards.",
    url="write a table of the source's database; it can be copied afterwards.",
)


_DIGITS = 6  # after the point, of a confidence: so products of counts stay whole numbers of 64 bits


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


def hiding_of(policy: Policy) -> tuple[HideRules, HiddenRulesParameters]:
    """Return the search and the model of a policy that hides rules."""
    (model,) = policy.privacy
    assert isinstance(policy.algorithm, HideRules)
    assert isinstance(model, HiddenRulesParameters)
    return policy.algorithm, model


def hiding_problems(policy: Policy, place: Callable[[Path], str]) -> Iterator[str]:
    """Say what does not go with the hiding of rules, or only with it.

    place: writes the path of a key for people.
    """
    yield from _PARTS.model_problems(policy, place)
    hides_rules = policy.algorithm.recodes is Recodes.ITEMS
    if not hides_rules or len(policy.privacy) != 1 or not isinstance(policy.privacy[0], HiddenRulesParameters):
        return
    yield from _PARTS.unused_problems(policy, place)
    yield from _role_problems(policy, place)
    yield from _layout_problems(policy, place)
    yield from _rule_problems(policy, place)


def _role_problems(policy: Policy, place: Callable[[Path], str]) -> Iterator[str]:
    for name, attribute in policy.attributes.items():
        path = place(("attributes", name))
        if attribute.role is Role.QUASI_IDENTIFIER:
            yield (
                f"{path}: a quasi-identifier would be released as it is, as hide-rules hides rules and not people; hide"
                " the rules of an anonymized table, or say that nobody can be recognized by it (role: insensitive)."
            )


def _layout_problems(policy: Policy, place: Callable[[Path], str]) -> Iterator[str]:
    algorithm, _ = hiding_of(policy)
    if algorithm.method == "border" and algorithm.most == 1:
        yield f"{place(('algorithm', 'most'))}: method: border keeps sets of up to `most` items; write 2 or more."
    for key in ("transaction", "item"):
        name, path = getattr(algorithm, key), place(("algorithm", key))
        if name is None:
            continue
        yield from _released_problems(policy, name, path)
        if algorithm.transaction is None or algorithm.item is None:
            yield f"{path}: transaction and item go together; name both columns, or none where rows are transactions."
        elif algorithm.transaction == algorithm.item:
            yield f"{path}: transaction and item are two columns."


def _released_problems(policy: Policy, name: str, path: str) -> Iterator[str]:
    attribute = policy.attributes.get(name)
    if attribute is None:
        yield f"{path}: '{name}' is not among the attributes; {did_you_mean(name, policy.attributes)}"
    elif attribute.role.leaves_out:
        yield f"{path}: '{name}' is left out of the release (role: {attribute.role.value}); give it another role."


def _rule_problems(policy: Policy, place: Callable[[Path], str]) -> Iterator[str]:
    algorithm, model = hiding_of(policy)
    model_place = len(policy.privacy) - 1
    shares: list[tuple[Path, float]] = [(("privacy", model_place, "confidence"), model.confidence)]
    for number, rule in enumerate(model.rules):
        path: Path = ("privacy", model_place, "rules", number)
        shares.append(((*path, "confidence"), model.confidence if rule.confidence is None else rule.confidence))
        if rule.names_columns is (algorithm.transaction is not None):
            form = "lists of items" if algorithm.transaction is not None else "mappings of columns to values"
            yield f"{place(path)}: sides must be {form} here."
        for name in _columns_of(rule):
            yield from _released_problems(policy, name, place(path))
    for path, share in shares:
        if round(share, _DIGITS) != share:
            yield f"{place(path)} must have up to {_DIGITS} digits after the point."


def _columns_of(rule: HiddenRule) -> tuple[str, ...]:
    return (*rule.if_, *rule.then) if rule.names_columns else ()
