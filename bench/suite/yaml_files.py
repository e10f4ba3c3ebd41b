"""YAML files of the user: a mapping of keys, each given once."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from bench.errors import UserError


def read_mapping(file: Path, keys: str) -> dict[str, Any]:
    """The file's content; `keys` says in the error what the file should hold."""
    try:
        with file.open(encoding="utf-8") as stream:
            content = yaml.load(stream, _OnceLoader)
    except UnicodeDecodeError:
        raise UserError(f"{file} is not a text file; give the path of a YAML file") from None
    except yaml.YAMLError as error:
        raise UserError(f"{file} is not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        raise UserError(f"{file} must hold a mapping of {keys}")
    return content


class _OnceLoader(yaml.SafeLoader):
    """PyYAML's safe loader, which lets the last of equal keys win; here a key given twice is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if (key.tag, key.value) in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"the key '{key.value}' is given twice", problem_mark=key.start_mark
                )
            seen.add((key.tag, key.value))
        return super().construct_mapping(node, deep)
