"""The language of the program: openings of docstrings, and words that no name may be made of."""

from __future__ import annotations

import ast
import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.syntax import statements

ROOT = Path(__file__).parents[1]
FOLDERS = ("sqlanon", "tests", "benchmarks", "migrations", "docs", "examples")

# A docstring begins with a verb (of a function), or with a noun (of data, properties, classes and modules).
QUESTIONS = re.compile(r"(What|Which|Whether|How|Where|Who|Whom|Whose|Why)\b")

# Words of which a name says nothing; the second column says what to write.
MEANINGLESS = {
    "alike": "equal, same",
    "beside": "the relation itself: staged, unique",
    "breadth": "tried",
    "contenders": "open_thresholds",
    "exploring": "tradeoffs, explore_lattice",
    "face": "box_label",
    "faces": "box_labels",
    "fallen": "violating",
    "fitting": "row_filter",
    "found": "the thing that was found",
    "halved": "median_only",
    "handed": "the purpose",
    "inheriting": "inherits_until",
    "judge": "check, list_violating_splits",
    "kid": "child",
    "kids": "children",
    "landing": "leaf_of_row",
    "lasting": "inherited",
    "leasts": "min_counts",
    "left_out": "unmatched_rows, omitted, suppressed",
    "look": "inspect, style",
    "looks": "the question that is answered",
    "lost": "missing, losses, is_broken",
    "misfits": "unmatched",
    "moment": "timestamp, time",
    "moments": "timestamps; count, sum and squares: power_sums",
    "parked": "deferred",
    "pose": "build_problem",
    "posed": "problem",
    "refutes": "implies_violation",
    "rehearsal": "dry_run",
    "rivals": "alternatives",
    "said": "text, message",
    "scene": "answers",
    "shelf": "cache",
    "signoff": "run_record",
    "spent": "consumed",
    "tight": "exact_ranges",
    "told": "messages, choices, facts",
    "trial": "costs, run",
    "trials": "candidate_splits",
    "twigs": "sample_nodes",
    "ways": "edges",
    "wish": "candidate",
    "wishes": "options",
}


@functools.cache
def modules() -> dict[str, ast.Module]:
    """Parse all modules, once, and only where these tests run."""
    return {
        str(path.relative_to(ROOT)): ast.parse(path.read_text(encoding="utf-8"))
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
    }


def docstrings() -> Iterator[tuple[str, str]]:
    """Yield the place and the text of every docstring, with those of attributes."""
    for module, tree in modules().items():
        for node in statements(tree):
            match node:
                case ast.Expr(ast.Constant(str(text))):
                    yield f"{module}:{node.lineno}", text.strip()


def names() -> Iterator[str]:
    """Yield the program's names of templates, modules, classes, functions, parameters, attributes and variables."""
    yield from (path.name.partition(".")[0] for path in (ROOT / "sql_templates").rglob("*.j2"))
    for module, tree in modules().items():
        if not module.startswith("sqlanon/"):
            continue
        yield Path(module).stem
        for node in ast.walk(tree):
            match node:
                case ast.ClassDef(name=name, body=body):
                    yield name
                    yield from (
                        s.target.id for s in body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)
                    )
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.arg(arg=name):
                    yield name
                case ast.Attribute(attr=name, ctx=ast.Store()):
                    yield name
                case ast.Name(id=name, ctx=ast.Store()):
                    yield name


# Names of other libraries' protocols, which our classes carry out.
OTHERS = frozenset({"connection_lost"})  # asyncio.Protocol


def words_of(name: str) -> set[str]:
    """Split a name, in snake or camel case, into its words and its pairs of words."""
    words = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]
    return {*words, *map("_".join, itertools.pairwise(words))}


def test_no_docstring_waits_to_be_written() -> None:
    assert [place for place, text in docstrings() if re.match(r"(TODO|FIXME|XXX)\b", text)] == []


def test_docstrings_open_with_a_verb_or_a_noun() -> None:
    assert [(place, text.splitlines()[0]) for place, text in docstrings() if QUESTIONS.match(text)] == []


def test_names_are_made_of_words_that_mean_something() -> None:
    meaningless = {
        name: MEANINGLESS[word] for name in {*names()} - OTHERS for word in words_of(name) & MEANINGLESS.keys()
    }
    assert meaningless == {}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("_kids_of", {"kids", "of", "kids_of"}),
        ("SQLWishes", {"sql", "wishes", "sql_wishes"}),
        ("node_2_told", {"node", "told", "node_told"}),
    ],
)
def test_names_are_split_into_words(name: str, words: set[str]) -> None:
    assert words_of(name) == words


def test_a_class_name_means_one_thing() -> None:
    defined = Counter(
        node.name
        for module, tree in modules().items()
        if module.startswith("sqlanon/")
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, times in defined.items() if times > 1] == []
