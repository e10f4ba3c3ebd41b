"""Methods from a user's file, script or notebook."""

from __future__ import annotations

import linecache
import subprocess
import sys
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bench.cli.templates import METHOD
from bench.errors import UserError
from bench.suite.methods import METHODS, code_digest
from bench.user_code.methods import digest_of_source, snake_case
from methods.fedprox import FedProx
from methods.wrappers.ggeur import GGEUR

NOTEBOOK = """
from methods.fedavg import FedAvg

FACTOR = 2

def doubled(value):
    return FACTOR * value

class Doubled(FedAvg):
    label = "Doubled"

    def objective(self, task, client, message):
        plain = super().objective(task, client, message)
        return lambda params, batch: doubled(plain(params, batch))
"""
cells = count()


def write_method(folder: Path, name: str = "my_method") -> Path:
    file = folder / f"{name}.py"
    file.write_text(METHOD.filled(name))
    return file


def typed_in(text: str, remembered: bool = True) -> Any:
    """A class from a notebook's cell: without a file, but with lines that Python remembers."""
    name = f"<ipython-input-{next(cells)}>"
    if remembered:
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    module = sys.modules.setdefault("notebook_of_a_test", ModuleType("notebook_of_a_test"))
    module.__dict__.clear()
    module.__dict__["__name__"] = "notebook_of_a_test"
    exec(compile(text, name, "exec"), module.__dict__)
    return module.__dict__["Doubled"]


def test_a_file_is_a_method_by_the_name_of_the_file(tmp_path: Path) -> None:
    file = write_method(tmp_path)
    kind = METHODS.load(str(file))
    assert kind.model_validate({"mu": 0.5}).model_dump()["mu"] == 0.5
    assert METHODS.resolve(str(file)) == "my_method"
    assert METHODS.load("my_method") is kind
    assert METHODS.is_own("my_method")
    assert "my_method" not in METHODS.names()


def test_a_file_can_be_wrapped(tmp_path: Path) -> None:
    name = METHODS.resolve(f"ggeur+{write_method(tmp_path)}")
    assert name == "ggeur+my_method"
    assert METHODS.load(name).label == "GGEUR+MyMethod"
    assert METHODS.source_digest(name) == METHODS.source_digest("my_method")


def test_a_changed_file_is_loaded_again_and_has_another_digest(tmp_path: Path) -> None:
    file = write_method(tmp_path)
    digests = []
    for default in ("0.01", "0.02"):
        file.write_text(METHOD.filled("my_method").replace("0.01", default))
        name = METHODS.resolve(str(file))
        assert METHODS.load(name)().model_dump()["mu"] == float(default)
        digests.append((METHODS.source_digest(name), code_digest(name)))
    assert digests[0][0] != digests[1][0]
    assert digests[0][1] != digests[1][1]


def test_the_digest_does_not_depend_on_where_the_file_is(tmp_path: Path) -> None:
    digests = set()
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
        digests.add(digest_of_source(METHODS.load(str(write_method(tmp_path / folder)))))
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("class X(:\n", "line 1: invalid syntax; correct it there"),
        ("\nimport no_such_package\n", "line 2 cannot be imported: ModuleNotFoundError"),
        ("x = 1\n", "defines no public subclass of FedAlgorithm"),
        (
            "from methods.fedavg import FedAvg\nclass A(FedAvg): pass\nclass B(FedAvg): pass\n",
            "defines 2 public subclasses of FedAlgorithm (A, B)",
        ),
    ],
)
def test_a_file_without_exactly_one_method_is_refused(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "wrong.py"
    file.write_text(text)
    with pytest.raises(UserError) as refusal:
        METHODS.load(str(file))
    assert words in str(refusal.value)
    assert "wrong.py" in str(refusal.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no file .*nothing\.py"):
        METHODS.load(str(tmp_path / "nothing.py"))


def test_a_shipped_name_cannot_be_taken(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="the name 'fedprox' belongs to a method that is already there"):
        METHODS.load(str(write_method(tmp_path, "fedprox")))


def test_a_shipped_class_goes_by_its_own_name() -> None:
    assert METHODS.register(FedProx) == "fedprox"
    assert not METHODS.is_own("fedprox")
    assert METHODS.source_digest("fedprox") is None


def test_something_else_than_a_method_is_refused() -> None:
    with pytest.raises(UserError, match="is not a method; give a subclass of FedAlgorithm"):
        METHODS.register(int)  # type: ignore[arg-type]


def test_a_wrapper_alone_is_no_method() -> None:
    with pytest.raises(UserError, match="GGEUR goes around another method"):
        METHODS.register(GGEUR)


def test_a_class_from_a_notebook_is_known_by_its_name_in_snake_case() -> None:
    kind = typed_in(NOTEBOOK)
    assert METHODS.register(kind) == "doubled"
    assert METHODS.load("doubled") is kind


@pytest.mark.parametrize(
    ("old", "new"),
    [("doubled(plain(", "doubled(2 * plain("), ("FACTOR * value", "value"), ("FACTOR = 2", "FACTOR = 3")],
    ids=["the class", "a function that it uses", "a number that it uses"],
)
def test_a_digest_covers_what_a_class_uses(old: str, new: str) -> None:
    before = digest_of_source(typed_in(NOTEBOOK))
    assert digest_of_source(typed_in(NOTEBOOK)) == before
    assert digest_of_source(typed_in(NOTEBOOK + "\nunrelated = 1\n")) == before
    assert digest_of_source(typed_in(NOTEBOOK.replace(old, new))) != before


def test_a_class_whose_source_is_gone_is_refused() -> None:
    with pytest.raises(UserError, match="the source of Doubled cannot be found"):
        METHODS.register(typed_in(NOTEBOOK, remembered=False))


@pytest.mark.parametrize(
    ("name", "expected"),
    [("MyMethod", "my_method"), ("FedAvg2", "fed_avg2"), ("FedLSA", "fed_lsa"), ("GGEURPlus", "ggeur_plus")],
)
def test_names_become_snake_case(name: str, expected: str) -> None:
    assert snake_case(name) == expected


IN_ANOTHER_PROCESS = """
import sys
from bench.suite.methods import METHODS, code_digest
for part in sys.stdin.read().split():
    name = METHODS.from_bytes(bytes.fromhex(part))
    kind = METHODS.load(name)
    around = METHODS.load(f"ggeur+{name}").label
    print(name, kind().label, METHODS.source_digest(name), code_digest(name), around)
"""


def test_methods_travel_to_another_process(tmp_path: Path) -> None:
    file = write_method(tmp_path)
    names = [METHODS.resolve(str(file)), METHODS.register(typed_in(NOTEBOOK))]
    expected = [
        f"{name} {METHODS.load(name).label} {METHODS.source_digest(name)} {code_digest(name)} "
        f"GGEUR+{METHODS.load(name).label}"
        for name in names
    ]
    parcels = "\n".join(METHODS.to_bytes(name).hex() for name in names)
    file.unlink()
    done = subprocess.run(
        [sys.executable, "-c", IN_ANOTHER_PROCESS], input=parcels, text=True, capture_output=True, check=True
    )
    assert done.stdout.splitlines() == expected
