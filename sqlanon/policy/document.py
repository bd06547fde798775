"""YAML text into plain data that remembers its lines: the first step of reading a policy.

YAML 1.2, so that `no` and `on` are plain names. Keys are names of columns and values as much as words of the
grammar, so a key is never guessed at: a whole number is its text, anything else that YAML would turn into
something other than text has to be quoted. A key that occurs twice is refused, and so is what
nests deeper than any policy or, by parts that are referred to again and again, grows larger.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.scanner import Scanner

from sqlanon.errors import PolicyError
from sqlanon.support.documents import DEEPEST, NO_TEXT, is_text

Path = tuple[str | int, ...]

_TAG = "tag:yaml.org,2002:"
_TEXT_TAGS = (_TAG + "str", _TAG + "timestamp", _TAG + "merge", _TAG + "value")
_PLAIN_TAGS = (_TAG + "int", _TAG + "float", _TAG + "bool", _TAG + "null")
_MOST_PARTS = 1_000_000  # of a policy, with all that it refers to written out


@dataclass
class Document:
    """A policy as plain data (dicts, lists, text, numbers), where each part stands, and what was wrong with it."""

    data: Any = None
    lines: dict[Path, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def place(self, path: Path) -> str:
        """The path as people write it, with its line where it has one: `attributes.age.role (line 7)`."""
        line = self.lines.get(path)
        return path_text(path) + (f" (line {line})" if line else "")


def path_text(path: Path) -> str:
    """`attributes.age.role`; a part that holds odd characters is quoted, a position is in brackets."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            plain = part.replace("-", "_").replace(" ", "_")
            text += ("." if text else "") + (part if plain.isidentifier() or plain.isalnum() else f'"{part}"')
    return text or "the policy"


def read_document(text: str) -> Document:
    """Parse YAML; a PolicyError that names the line, and no value, if it is not YAML at all."""
    if not is_text(text):
        raise PolicyError(f"The policy is not valid YAML: it holds {NO_TEXT}.")
    yaml = YAML(typ="safe", pure=True)
    yaml.Scanner = _BoundedScanner
    try:
        node = yaml.compose(StringIO(text))
        document = Document()
        document.data = _Conversion(yaml, document).convert(node, ()) if node is not None else None
    except MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
        hint = " A text that holds ${…} must be in quotes." if "${" in text else ""
        raise PolicyError(f"The policy is not valid YAML: {where}{error.problem or 'cannot be read'}.{hint}") from None
    except (YAMLError, RecursionError):
        raise PolicyError("The policy is not valid YAML: it holds a forbidden character, or nests too deep.") from None
    except (ValueError, OverflowError):  # of Python, where a number or an escape stands for nothing
        raise PolicyError("The policy is not valid YAML: it holds an impossible number or character.") from None
    return document


class _BoundedScanner(Scanner):
    """A scanner that stops at nestings no policy has: each level costs it time for every later character."""

    def fetch_flow_collection_start(self, *token: Any, **more: Any) -> None:
        self._refuse_depth()
        super().fetch_flow_collection_start(*token, **more)

    def add_indent(self, column: int) -> bool:
        self._refuse_depth()
        return bool(super().add_indent(column))

    def _refuse_depth(self) -> None:
        if self.flow_level + len(self.indents) >= DEEPEST:
            line = self.reader.get_mark().line + 1
            raise PolicyError(f"The policy nests deeper than {DEEPEST} levels (line {line}).")


class _Conversion:
    """Nodes to data; an anchored node is converted once, and may not hold itself."""

    def __init__(self, yaml: YAML, document: Document) -> None:
        self._yaml = yaml
        self._document = document
        self._done: dict[int, Any] = {}
        self._open: set[int] = set()
        self._sizes: dict[int, int] = {}  # of what was converted, with all that it refers to written out

    def convert(self, node: Node, path: Path) -> Any:
        self._document.lines[path] = node.start_mark.line + 1
        if id(node) in self._open:
            raise PolicyError(f"{self._document.place(path)} refers to itself.")
        if id(node) not in self._done:
            self._open.add(id(node))
            self._done[id(node)] = self._inside(node, path)
            self._count_parts(node, path)
            self._open.remove(id(node))
        return self._done[id(node)]

    def _count_parts(self, node: Node, path: Path) -> None:
        """Count the parts of what was converted; refuse the few lines that stand for thousands of millions."""
        inside = [part for pair in node.value for part in pair] if isinstance(node, MappingNode) else node.value
        parts = () if isinstance(node, ScalarNode) else inside
        self._sizes[id(node)] = size = 1 + sum(self._sizes.get(id(part), 1) for part in parts)
        if size > _MOST_PARTS:
            raise PolicyError(f"{self._document.place(path)} has more than {_MOST_PARTS:,} parts.")

    def _inside(self, node: Node, path: Path) -> Any:
        if isinstance(node, MappingNode):
            return self._mapping(node, path)
        if isinstance(node, SequenceNode):
            return [self.convert(child, (*path, position)) for position, child in enumerate(node.value)]
        return self._scalar(node, path)

    def _text(self, node: Node, path: Path) -> str:
        """The text of a scalar; two escapes may make one character, as in JSON."""
        text = str(node.value)
        with contextlib.suppress(UnicodeDecodeError):
            text = text.encode("utf-16", "surrogatepass").decode("utf-16")
        if not is_text(text):
            raise PolicyError(f"{self._document.place(path)} holds {NO_TEXT}.")
        return text

    def _scalar(self, node: Node, path: Path) -> Any:
        if node.tag in _TEXT_TAGS:
            return self._text(node, path)
        if node.tag in _PLAIN_TAGS:
            return self._yaml.constructor.construct_object(node)
        self._document.problems.append(f"{self._document.place(path)}: the YAML tag {node.tag} means nothing here.")
        return self._text(node, path)

    def _mapping(self, node: MappingNode, path: Path) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            key = self._key(key_node, path)
            if key is None:
                continue
            if key in data:
                self._document.problems.append(f"{path_text((*path, key))} (line {line}) is given twice.")
            data[key] = self.convert(value_node, (*path, key))
            self._document.lines[(*path, key)] = line
        return data

    def _key(self, node: Node, path: Path) -> str | None:
        line = node.start_mark.line + 1
        if not isinstance(node, ScalarNode):
            self._document.problems.append(f"{path_text(path)} (line {line}): a key must be a name.")
            return None
        self._document.lines.setdefault(path, line)
        text = self._text(node, path)
        whole = node.tag == _TAG + "int" and text == str(self._yaml.constructor.construct_object(node))
        is_word = text == "null" and path == ("source",)  # of the grammar
        if node.tag not in _TEXT_TAGS and not whole and not is_word:
            self._document.problems.append(
                f"{path_text((*path, text))} (line {line}): YAML may read this key as something other than text; "
                f'write it in quotes: "{text}".'
            )
        return text
