"""YAML files of the user: a mapping of keys, each given once, that nobody can make a trap."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any, Final

import yaml

from bench.errors import UserError

LARGEST: Final = 1_000_000
"""Bytes of a file; the shipped ones have some thousands."""
MOST_VALUES: Final = 100_000
"""With everything that an alias (`*name`) stands for written out."""
DEEPEST: Final = 40
"""Mappings and lists inside each other."""


def read_mapping(file: Path, keys: str) -> dict[str, Any]:
    """The file's content; `keys` says in the error what the file should hold."""
    try:
        text = file.read_bytes()
        if len(text) > LARGEST:
            raise UserError(f"{file} has {len(text)} bytes; at most {LARGEST} are read, so make it smaller")
        content = yaml.load(text.decode(), _OnceLoader)
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}; give the path of a YAML file") from None
    except UnicodeDecodeError:
        raise UserError(f"{file} is not a text file; give the path of a YAML file") from None
    except RecursionError:
        raise UserError(f"{file} is nested too deeply; write it with fewer lists inside lists") from None
    # PyYAML raises a ValueError for what looks like a date or number and is none, such as 2025-13-01.
    except (yaml.YAMLError, ValueError) as error:
        raise UserError(f"{file} is not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        raise UserError(f"{file} must hold a mapping of {keys}")
    return content


class _OnceLoader(yaml.SafeLoader):
    """PyYAML's safe loader, made stricter.

    PyYAML lets the last of equal keys win; here a key given twice is an error. So is a tag (`!!set`), and
    more values than anybody needs once aliases are written out: ten lines of them can stand for billions.
    """

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        events: Any = self  # PyYAML's annotations leave this out
        event = events.peek_event()
        if (tag := getattr(event, "tag", None)) is not None:
            raise yaml.MarkedYAMLError(
                problem=f"the tag '{tag}' is not allowed; leave it out", problem_mark=event.start_mark
            )
        return super().compose_node(parent, index)

    def get_single_node(self) -> yaml.Node | None:
        node = super().get_single_node()
        if node is not None:
            _refuse_bombs(node, {}, ())
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if (key.tag, key.value) in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"the key '{key.value}' is given twice", problem_mark=key.start_mark
                )
            seen.add((key.tag, key.value))
        return super().construct_mapping(node, deep)


def _refuse_bombs(node: yaml.Node, sizes: dict[yaml.Node, int], outer: tuple[yaml.Node, ...]) -> int:
    """How many values the node stands for; an error if they are too many, too deep or inside themselves."""
    if node in outer or len(outer) > DEEPEST:
        where = "contains itself" if node in outer else "is nested too deeply"
        raise yaml.MarkedYAMLError(problem=f"what stands here {where}", problem_mark=node.start_mark)
    if node not in sizes:
        within = (*outer, node)
        sizes[node] = 1 + sum(_refuse_bombs(child, sizes, within) for child in _children(node))
    if sizes[node] > MOST_VALUES:
        raise yaml.MarkedYAMLError(
            problem=f"its aliases stand for more than {MOST_VALUES} values", problem_mark=node.start_mark
        )
    return sizes[node]


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [child for pair in node.value for child in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []
