"""Reading a policy: YAML text to a checked `Policy`, or one PolicyError that lists everything wrong."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from sqlanon.engines.files import STANDARD_INPUT
from sqlanon.errors import PolicyError
from sqlanon.policy import Policy, Recodes, Role, Show, Source
from sqlanon.policy.algorithms import algorithm_names, is_missing, parameters_of_algorithm
from sqlanon.policy.attributes import hierarchy_kinds
from sqlanon.policy.budget_rules import budget_problems
from sqlanon.policy.document import Document, Path, read_document
from sqlanon.policy.privacy import MODELS
from sqlanon.policy.problems import problems_of
from sqlanon.support.documents import is_path_in_text, read_bounded, refuse_odd_data
from sqlanon.support.environment import Expanded, expanded, missing_variable, written
from sqlanon.support.methods import methods_of_policy
from sqlanon.support.suggest import any_of, did_you_mean

_MOST_BYTES = 8 * 2**20  # of a file with a policy; a minute's reading


def load_policy(path: str | os.PathLike[str]) -> Policy:
    """Read a policy file; the files it names are relative to its directory.

    Raises what `read_policy` and `parse_policy` raise.
    """
    return parse_policy(read_policy(path), FilePath(path).parent)


def read_policy(path: str | os.PathLike[str]) -> str:
    """Read the text of a policy file.

    Raises PolicyError if there is no such file or it is no text, AccessError if it may not be read.
    """
    try:
        return read_bounded(path, "policy", _MOST_BYTES)
    except PolicyError as error:
        if not FilePath(path).exists():
            error.add_note("`sqlanon init` drafts a policy for a table.")
        raise


def parse_policy(text: str, base_directory: str | os.PathLike[str] | None = None) -> Policy:
    """Read a policy from YAML text; the files it names are relative to `base_directory`, if given."""
    return build_document(read_document(text), base_directory)


def parse_stored(text: str) -> Policy:
    """Read a policy that a catalog or a record keeps, as it was meant when it was stored.

    NULL was a value for l-diversity, and classes that hold it showed the numbers of others, before policies said what
    it is.
    """
    document = read_document(text)
    attributes = document.data.get("attributes") if isinstance(document.data, dict) else None
    for attribute in attributes.values() if isinstance(attributes, dict) else ():
        if isinstance(attribute, dict) and attribute.get("role") == Role.SENSITIVE:
            attribute.setdefault("nulls", "value")
        elif isinstance(attribute, dict) and attribute.get("role") == Role.QUASI_IDENTIFIER:
            attribute.setdefault("nulls", "allow")
    try:
        return build_document(document, None, is_stored=True)
    except PolicyError as error:
        error.add_note("The policy is a stored one: is a package that added to it not installed any more?")
        raise


def build_policy(data: Mapping[str, Any], base_directory: str | os.PathLike[str] | None = None) -> Policy:
    """A policy from plain data of the same grammar (dicts, lists, text, numbers)."""
    refuse_odd_data(data)
    return build_document(Document(copy.deepcopy(dict(data))), base_directory)


def parse_source(data: Mapping[str, Any]) -> Source:
    """A policy's source alone, from plain data; raises PolicyError with everything wrong in it."""
    document = Document({"source": dict(data)})
    _put_in_full(document.data["source"])
    try:
        return Source.model_validate(document.data["source"])
    except ValidationError as error:
        raise PolicyError([f"source {detail['msg']}" for detail in error.errors()]) from None


def build_document(
    document: Document, base_directory: str | os.PathLike[str] | None, *, is_stored: bool = False
) -> Policy:
    """A policy from plain data that remembers its lines; the files it names are relative to `base_directory`.

    is_stored: it may refer to variables that are not set, as long as what refers to them is not used.
    """
    if not isinstance(document.data, dict):
        raise PolicyError("The policy must be a mapping with the keys source, release, attributes and privacy.")
    if "tables" in document.data:
        raise PolicyError(
            "The policy is of several tables (`tables:`). `check`, `run`, `verify` and `risk` take such policies; this"
            " command takes policies of one table."
        )
    _Preparation(document, FilePath(base_directory) if base_directory is not None else None, is_stored).run()
    problems = list(document.problems)
    try:
        policy = Policy.model_validate(document.data)
        if is_missing(policy.algorithm):
            problems.append(f"algorithm is missing; choose from {', '.join(algorithm_names())}.")
        else:
            problems += _method_problems(policy, document.place)
    except ValidationError as error:
        problems += problems_of(error, document)
    problems += _place_problems(document) + _missing_models(document) + _model_problems(document)
    if problems:
        raise PolicyError(problems)
    return policy


def _method_problems(policy: Policy, place: Callable[[Path], str]) -> Iterator[str]:
    """Say what does not go with the methods that a policy names, or only with one that it does not name.

    place: writes the path of a key for people.
    """
    yield from budget_problems(policy, place)
    for name, attribute in policy.attributes.items():
        if attribute.show is Show.SHIFTED and policy.algorithm.recodes is not Recodes.ROWS:
            where = place(("attributes", name, "show"))
            yield f"{where}: shifted is for algorithm: masking; {policy.algorithm.name} does not shift dates."
    guarantees = [model.model for model in policy.privacy if model.model not in MODELS]
    for method in methods_of_policy(policy.algorithm.name, guarantees):
        if method.rules is not None:
            yield from method.load(method.rules)(policy, place)


class _Preparation:
    """Puts the grammar's short forms into full ones, in place, before types are checked."""

    def __init__(self, document: Document, base_directory: FilePath | None, is_stored: bool) -> None:
        self._document = document
        self._base = base_directory
        self._is_stored = is_stored

    def run(self) -> None:
        data = self._document.data
        for part in ("source", "release", "catalog"):
            if isinstance(data.get(part), dict):
                self._expand(data[part], "url", (part, "url"))
                self._locate(data[part], "file", (part, "file"))
        if isinstance(data.get("source"), dict):
            _put_in_full(data["source"])
        if data.get("suppressed") == {"star": "unprotected"}:
            data["suppressed"] = "star: unprotected"
        attributes = data.get("attributes")
        for name, attribute in attributes.items() if isinstance(attributes, dict) else ():
            if isinstance(attribute, dict) and "hierarchy" in attribute:
                path: Path = ("attributes", name, "hierarchy")
                attribute["hierarchy"] = self._hierarchy(attribute["hierarchy"], path)
            if isinstance(attribute, dict) and isinstance(attribute.get("key"), dict):
                attribute["key"] = dict(attribute["key"])
                self._locate(attribute["key"], "file", ("attributes", name, "key", "file"))
        privacy = data.get("privacy")
        for place, model in enumerate(privacy if isinstance(privacy, list) else ()):
            if isinstance(model, dict) and isinstance(model.get("distance"), dict):
                model["distance"] = dict(model["distance"])
                self._locate(model["distance"], "csv", ("privacy", place, "distance", "csv"))
            if isinstance(model, dict) and isinstance(model.get("population"), dict):
                model["population"] = dict(model["population"])
                self._expand(model["population"], "url", ("privacy", place, "population", "url"))
        if isinstance(data.get("algorithm"), dict):
            self._locate_files_of(data["algorithm"])

    def _locate_files_of(self, algorithm: dict[str, Any]) -> None:
        """Place the files that entries of the algorithm's mappings name."""
        parameters = parameters_of_algorithm(algorithm.get("name"))
        for mapping, key in ({} if parameters is None else parameters.files_at).items():
            entries = algorithm.get(mapping)
            if not isinstance(entries, dict):
                continue
            for name, entry in entries.items():
                if isinstance(entry, dict) and key in entry:
                    entries[name] = dict(entry)
                    self._locate(entries[name], key, ("algorithm", mapping, name, key))

    def _hierarchy(self, given: Any, path: Path) -> Any:
        if isinstance(given, str):
            return self._named_hierarchy(given, path)
        if not isinstance(given, dict):
            return given
        full = dict(given)
        self._locate(full, "csv", (*path, "csv"))
        for key in ("date", "intervals"):
            if key in full and not isinstance(full[key], (list, dict)):
                full[key] = [full[key]]
        if isinstance(full.get("mapping"), dict):
            full["mapping"] = {value: _labels(labels) for value, labels in full["mapping"].items()}
        if _is_whole(full.get("unknown")):
            full["unknown"] = str(full["unknown"])
        return full

    def _named_hierarchy(self, name: str, path: Path) -> dict[str, Any] | None:
        if name != "suppress":
            place = self._document.place(path)
            if name in hierarchy_kinds():
                self._document.problems.append(f"{place}: '{name}' needs a value: write {{{name}: …}}.")
            else:
                self._document.problems.append(f"{place}: '{name}' is unknown; {did_you_mean(name, hierarchy_kinds())}")
            return None
        return {"suppress": True}

    def _expand(self, part: dict[str, Any], key: str, path: Path) -> None:
        """Replace `${NAME}` by the environment's value, and `$$` by `$`."""
        if not isinstance(part.get(key), str):
            return
        part[key] = text = expanded(part[key])
        if isinstance(text, Expanded) and not self._is_stored:
            place = self._document.place(path)
            self._document.problems += [f"{place}: {_begun(missing_variable(name))}" for name in text.missing]

    def _locate(self, part: dict[str, Any], key: str, path: Path) -> None:
        """Expand a file name and place it in the policy's directory; addresses such as s3://… stay."""
        self._expand(part, key, path)
        name = part.get(key)
        if isinstance(name, str) and "://" not in name and name != STANDARD_INPUT:
            part[key] = _placed(name, self._base)
            if not is_path_in_text(part[key]):
                self._document.problems.append(
                    f"{self._document.place(path)}: the path of the file, or a directory on it, is not text in UTF-8,"
                    " which databases ask for; rename it, or work in another directory."
                )


def _placed(name: str, base: FilePath | None) -> str:
    """A file name in a directory, as it is and as it is written."""
    if base is None and not isinstance(name, Expanded):
        return name
    file = FilePath(name).expanduser()
    whole = str(file if base is None else base.absolute() / file)
    if not isinstance(name, Expanded) or name.missing:
        return name if isinstance(name, Expanded) else whole
    begin = "" if base is None or file.is_absolute() else written(str(base.absolute())) + os.sep
    return Expanded(whole, begin + str(FilePath(name.written).expanduser()))


def _begun(sentence: str) -> str:
    """A sentence as it goes on after a colon."""
    return sentence[0].lower() + sentence[1:]


def _put_in_full(source: dict[str, Any]) -> None:
    """Make a list of each key that may have one value or many; write whole numbers there as text."""
    for key in ("null", "dates", "names"):
        if key in source:
            given = source[key] if isinstance(source[key], list) else [source[key]]
            source[key] = [str(value) if _is_whole(value) else value for value in given]
    if source.get("delimiter") == "tab":
        source["delimiter"] = "\t"


def _labels(labels: Any) -> Any:
    """Whole numbers as labels are their text."""
    if isinstance(labels, list):
        return [str(label) if _is_whole(label) else label for label in labels]
    return str(labels) if _is_whole(labels) else labels


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _place_problems(document: Document) -> list[str]:
    """A file has no database that a released table could go to."""
    source, release = document.data.get("source"), document.data.get("release")
    if not isinstance(source, dict) or not isinstance(release, dict):
        return []
    if "file" in source and source.keys().isdisjoint({"url", "table"}) and release.keys() == {"table"}:
        return [f"{document.place(('release',))} needs a url for its table, as the source is a file."]
    return []


def _missing_models(document: Document) -> list[str]:
    """A policy without models, where its algorithm is judged by some."""
    algorithm = document.data.get("algorithm")
    parameters = parameters_of_algorithm(algorithm.get("name")) if isinstance(algorithm, dict) else None
    if "privacy" in document.data or (parameters is not None and not parameters.takes_models):
        return []
    return ["privacy is missing."]


def _model_problems(document: Document) -> list[str]:
    """Models whose attribute is not a sensitive one; told from the raw data, so that nothing else hides them."""
    attributes, models = document.data.get("attributes"), document.data.get("privacy")
    if not isinstance(attributes, dict) or not isinstance(models, list):
        return []
    problems = []
    for position, model in enumerate(models):
        name = model.get("attribute") if isinstance(model, dict) else None
        if isinstance(name, str):
            problem = _attribute_problem(name, attributes)
            if problem:
                problems.append(f"{document.place(('privacy', position, 'attribute'))}: {problem}")
    return problems


def _attribute_problem(name: str, attributes: dict[str, Any]) -> str | None:
    if name not in attributes:
        return f"'{name}' is not among the attributes; {did_you_mean(name, attributes)}"
    attribute = attributes[name]
    role = attribute.get("role") if isinstance(attribute, dict) else None
    if role == Role.SENSITIVE or not isinstance(role, str):
        return None
    sensitive = [other for other, its in attributes.items() if isinstance(its, dict) and its.get("role") == "sensitive"]
    offer = f"; the sensitive ones are {any_of(sensitive)}" if sensitive else ""
    return f"'{name}' has role {role}, and a model's attribute must be sensitive{offer}."
