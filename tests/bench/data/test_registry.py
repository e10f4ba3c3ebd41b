import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.data import dataset_names, dataset_spec, dataset_summaries
from bench.data.base import DatasetSpec
from bench.errors import UserError
from bench.registry import Registry, source_files

BUILT_IN = [
    "cifar10",
    "cifar100",
    "digits",
    "digits_mini",
    "office_caltech",
    "office_home",
    "pacs",
    "reviews",
    "tiny_imagenet",
]


OWN = ["arrays", "folder"]


def test_every_file_is_a_dataset() -> None:
    assert dataset_names() == sorted(BUILT_IN + OWN)
    for name in BUILT_IN:
        spec = dataset_spec(name, {})
        assert isinstance(spec, DatasetSpec)
        assert spec.domain_names()
        assert len(set(spec.classes)) == len(spec.classes)
    expected = {"cifar10": 10, "cifar100": 100, "office_home": 65, "pacs": 7, "office_caltech": 10}
    assert {name: len(dataset_spec(name, {}).classes) for name in expected} == expected


def test_summaries_come_without_imports() -> None:
    code = (
        "import sys; from bench.data import dataset_summaries; found = dataset_summaries();"
        "heavy = {'numpy', 'torch', 'pydantic', 'bench.data.datasets.pacs'} & set(sys.modules);"
        "print(len(found), all(found.values()), heavy)"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.split("\n")[0] == f"{len(BUILT_IN + OWN)} True set()"
    assert dataset_summaries()["pacs"].startswith("PACS: seven kinds")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("offce_caltech", {}, "unknown dataset 'offce_caltech'; did you mean 'office_caltech'?"),
        ("pacs", {"sise": 64}, "unknown key 'sise'; did you mean 'size'?"),
        ("pacs", {"size": 4}, "size = 4"),
        ("digits", {"domains": ["mnits"]}, "'mnits'"),
        ("digits", {"domains": ["mnist", "mnist"]}, "named twice"),
        ("digits", {"domains": []}, "domains = []"),
        ("folder", {}, "key 'path' is missing"),
        ("folder", {"path": "no/such/place"}, "no 'no/such/place' in the current directory"),
        ("arrays", {"path": "/no/such.npz"}, "no file or folder /no/such.npz"),
    ],
)
def test_wrong_names_and_options(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as caught:
        dataset_spec(name, options)
    assert message in str(caught.value)


@pytest.fixture
def installed_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real distribution on the path that declares entry points."""
    (tmp_path / "their_data.py").write_text(
        "from bench.data.base import DatasetSpec\n"
        "class Theirs(DatasetSpec):\n"
        "    classes = ('a', 'b')\n"
        "    counts = {'theirs': None}\n"
        "    def fingerprint(self, root): return ''\n"
        "    def build(self, root, domain): raise NotImplementedError\n"
        "wrong = 3\n"
    )
    about = tmp_path / "their_package-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: their-package\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[bench.datasets]\ntheirs = their_data:Theirs\nwrong = their_data:wrong\npacs = their_data:Theirs\n"
    )
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("installed_package")
def test_entry_points() -> None:
    assert "theirs" in dataset_names()
    assert dataset_summaries()["theirs"] == "from the package their-package"
    assert dataset_spec("theirs", {}).domain_names() == ("theirs",)
    with pytest.raises(UserError, match="'wrong': the entry point their_data:wrong is no subclass"):
        dataset_spec("wrong", {})
    assert type(dataset_spec("pacs", {})).__name__ == "Pacs"


def test_one_class_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "kinds_of_int"
    for folder in ("parts", "large"):
        (package / folder).mkdir(parents=True)
    for file, text in {
        "__init__.py": "",
        "base.py": "class Base(int): ...\n",
        "parts/__init__.py": "",
        "large/__init__.py": "",
        "large/method.py": '"Two files."\nfrom kinds_of_int.large.helper import H\nclass Large(H): ...\n',
        "large/helper.py": "class H(int): ...\n",
        "one.py": '"""The one.\n\nMore."""\nclass _Helper(int): ...\nclass One(_Helper): ...\n',
        "two.py": "class Two(int): ...\nclass Three(int): ...\n",
        "none.py": "from kinds_of_int.one import One\n",
        "torn.py": "import sys\nclass Torn(\n",
    }.items():
        (package / file).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    registry = Registry("kinds_of_int", "no.such.group", "integer", lambda: int)
    assert registry.names() == ["large", "none", "one", "torn", "two"]
    assert registry.ships("large") and not registry.ships("parts")
    torn = "cannot be read: line 2: '(' was never closed"
    assert registry.summaries() == {
        "large": "Two files.",
        "none": "",
        "one": "The one.",
        "torn": torn,
        "two": "",
    }
    with pytest.raises(UserError, match=r"torn\.py, line 2: '\(' was never closed; correct it there"):
        registry.load("torn")
    assert registry.load("one").__name__ == "One"
    assert registry.load("large").__name__ == "Large"
    assert [file.name for file in source_files(registry.load("one"))] == ["one.py"]
    assert [file.name for file in source_files(registry.load("large"))] == [
        "__init__.py",
        "helper.py",
        "method.py",
    ]
    for name, number in (("two", 2), ("none", 0)):
        with pytest.raises(UserError, match=f"exactly one public subclass of int, but has {number}"):
            registry.load(name)
