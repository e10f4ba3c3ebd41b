"""Suites: what a file may say, and how a command changes it."""

from pathlib import Path
from typing import Any

import pytest

from bench.errors import UserError
from bench.suite.loading import load_suite, suite_names
from bench.suite.model import Suite
from bench.suite.overrides import parse_assignment
from bench.suite.rows import with_rows
from tests.kit.cli import TINY, write_suite


@pytest.fixture
def suite() -> Suite:
    return Suite.model_validate(TINY)


@pytest.mark.parametrize("name", suite_names())
def test_every_shipped_suite_loads_under_the_name_of_its_file(name: str) -> None:
    assert load_suite(name).suite == name


def test_a_suite_is_found_by_its_path(tmp_path: Path) -> None:
    assert load_suite(str(write_suite(tmp_path, title="β"))).title == "β"


def test_what_a_file_leaves_out_has_its_default(suite: Suite) -> None:
    assert suite.training.participation == 1.0
    assert suite.training.validation == 0.0
    assert suite.evaluation.personal is False
    assert suite.table.kind == "domains"
    assert suite.variants == ()


def test_a_method_is_a_name_or_a_name_with_settings() -> None:
    row = {"name": "fedprox", "label": "FedProx, strong", "set": {"mu": 1.0}}
    first, second = Suite.model_validate(TINY | {"methods": ["fedavg", row]}).methods
    assert (first.name, first.label, first.set) == ("fedavg", None, {})
    assert second.model_dump(exclude_unset=True) == row


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("fedlsa.lam=0.7", "fedlsa.lam", 0.7),
        ("training.rounds=20", "training.rounds", 20),
        ("fedlsa.separation=false", "fedlsa.separation", False),
        ("dataset.name=pacs", "dataset.name", "pacs"),
        ("model.channels=[16, 32]", "model.channels", [16, 32]),
        ("partition={name: iid, clients: 2}", "partition", {"name": "iid", "clients": 2}),
        ("fedavg.optimiser=null", "fedavg.optimiser", None),
        ("dataset.name=a=b", "dataset.name", "a=b"),
    ],
)
def test_an_assignment_is_a_key_and_a_yaml_value(text: str, key: str, value: Any) -> None:
    parsed = parse_assignment(text)
    assert parsed == (key, value)
    assert type(parsed[1]) is type(value)


@pytest.mark.parametrize("text", ["", "fedlsa.lam", "=0.7", "fedlsa.lam=", "model.channels=[16"])
def test_what_is_no_assignment_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="--set"):
        parse_assignment(text)


@pytest.mark.parametrize(
    ("key", "value", "get"),
    [
        ("training.rounds", 9, lambda s: s.training.rounds),
        ("training.optimiser.lr", 0.5, lambda s: s.training.optimiser["lr"]),
        ("training.optimiser", {"name": "adam", "lr": 1e-3}, lambda s: s.training.optimiser),
        ("evaluation.personal", True, lambda s: s.evaluation.personal),
        ("partition.samples", 30, lambda s: s.partition["samples"]),
        ("dataset.seed", 3, lambda s: s.dataset["seed"]),
        ("partition", {"name": "iid", "clients": 2}, lambda s: s.partition),
        ("fedprox.mu", 0.3, lambda s: s.methods[1].set["mu"]),
    ],
)
def test_one_key_changes_and_nothing_else(suite: Suite, key: str, value: Any, get: Any) -> None:
    before = suite.model_dump()
    changed = suite.changed({key: value})
    assert get(changed) == value
    assert suite.model_dump() == before, "the suite itself was edited"
    section = key.partition(".")[0]
    touched = "methods" if section == "fedprox" else section
    assert changed.model_dump(exclude={touched}) == suite.model_dump(exclude={touched})


def test_a_hyperparameter_changes_in_every_row_of_its_method_and_keeps_the_others() -> None:
    rows = [
        "fedavg",
        {"name": "fedlsa", "label": "weak", "set": {"lam": 0.1, "tau": 0.2}},
        {"name": "fedlsa", "label": "strong", "set": {"lam": 0.7}},
    ]
    changed = Suite.model_validate(TINY | {"methods": rows}).changed({"fedlsa.tau": 0.5})
    assert [entry.set for entry in changed.methods] == [
        {},
        {"lam": 0.1, "tau": 0.5},
        {"lam": 0.7, "tau": 0.5},
    ]


def test_one_key_of_a_methods_optimiser_changes_and_the_others_stay() -> None:
    own = {"name": "scaffold", "set": {"optimiser": {"name": "sgd", "lr": 0.02, "weight_decay": 0.1}}}
    suite = Suite.model_validate(TINY | {"methods": ["fedavg", own]})
    changed = suite.changed({"scaffold.optimiser.lr": 0.5, "fedavg.optimiser.momentum": 0.9})
    assert changed.methods[1].set["optimiser"] == {"name": "sgd", "lr": 0.5, "weight_decay": 0.1}
    assert changed.methods[0].set["optimiser"] == TINY["training"]["optimiser"] | {"momentum": 0.9}
    assert changed.training == suite.training
    with pytest.raises(UserError, match=r"'lr' is a value and has no keys; set scaffold\.optimiser\.lr"):
        suite.changed({"scaffold.optimiser.lr.more": 1})


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("trainig.rounds", "'training'"),
        ("fedprxo.mu", "'fedprox'"),
        ("rounds", "training"),
        ("training.round", "'rounds'"),
        ("evaluation.evry", "'every'"),
        ("training.rounds.more", "rounds"),
    ],
)
def test_an_unknown_key_is_refused_with_a_hint(suite: Suite, key: str, hint: str) -> None:
    with pytest.raises(UserError, match=hint):
        suite.changed({key: 3})


def test_methods_are_chosen_in_the_order_of_the_command(suite: Suite) -> None:
    assert [entry.name for entry in with_rows(suite, ["fedprox", "fedavg"]).methods] == [
        "fedprox",
        "fedavg",
    ]


def test_a_chosen_method_keeps_its_rows_and_a_new_one_has_its_defaults() -> None:
    rows = ["fedavg", {"name": "fedlsa", "label": "weak", "set": {"lam": 0.1}}, {"name": "fedlsa"}]
    chosen = with_rows(Suite.model_validate(TINY | {"methods": rows}), ["fedlsa", "moon"])
    assert [(entry.name, entry.label, entry.set) for entry in chosen.methods] == [
        ("fedlsa", "weak", {"lam": 0.1}),
        ("fedlsa", None, {}),
        ("moon", None, {}),
    ]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"sedes": 3}, "unknown key 'sedes'; did you mean 'seeds'"),
        (
            {"training": TINY["training"] | {"rouns": 3}},
            "'training.rouns'; did you mean 'rounds'",
        ),
        ({"methods": [{"name": "fedavg", "lable": "x"}]}, "did you mean 'label'"),
        ({"variants": [{"name": "a", "sett": {}}]}, "did you mean 'set'"),
        ({"methods": []}, "methods"),
        ({"seeds": 0}, "seeds = 0"),
        ({"version": 0}, "version = 0"),
        ({"training": {"rounds": 4}}, "key 'training.batch_size' is missing"),
        ({"training": TINY["training"] | {"participation": 0}}, "training.participation = 0"),
        ({"training": TINY["training"] | {"validation": 1}}, "training.validation = 1"),
        ({"table": {"kind": "domain"}}, "table.kind = 'domain'"),
        ({"table": {"kind": "ablation"}}, "the table kind 'ablation' needs the key 'switches'"),
        ({"table": {"kind": "wrapped"}}, "the table kind 'wrapped' needs the key 'wrapper'"),
        ({"table": {"wrapper": "ggeur"}}, "'wrapper' belongs to the table kind 'wrapped', not 'domains'"),
        ({"table": {"kind": "ablation", "switch": {}}}, "did you mean 'switches'"),
    ],
)
def test_a_mistake_in_a_file_is_named_with_file_and_key(
    tmp_path: Path, changes: dict[str, Any], expected: str
) -> None:
    file = write_suite(tmp_path, **changes)
    with pytest.raises(UserError, match=r"tiny\.yaml") as caught:
        load_suite(str(file))
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["suite: [tiny", "- a list", "", "just text", "suite: !!python/name:os.system"]
)
def test_a_file_that_holds_no_mapping_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "odd.yaml"
    file.write_text(text)
    with pytest.raises(UserError, match=r"odd\.yaml") as caught:
        load_suite(str(file))
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "odd.yaml"
    file.write_bytes(b"\xff\xfe\x00\x80")
    with pytest.raises(UserError, match=r"odd\.yaml"):
        load_suite(str(file))


def test_a_misspelt_suite_gets_the_nearest_name_and_a_missing_file_its_path(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="did you mean 'quickstart'"):
        load_suite("quickstrat")
    with pytest.raises(UserError, match=r"missing\.yaml"):
        load_suite(str(tmp_path / "missing.yaml"))


def test_an_encoder_is_set_by_its_name_or_by_its_keys(suite: Suite) -> None:
    named = suite.changed({"encoder": "pixels"})
    assert named.encoder is not None and (named.encoder.name, named.encoder.normalised) == ("pixels", False)
    scaled = named.changed({"encoder.normalised": True})
    assert scaled.encoder is not None and (scaled.encoder.name, scaled.encoder.normalised) == ("pixels", True)
    assert scaled.encoder.model_dump() == {"name": "pixels", "normalised": True}
    halved = named.changed({"encoder.stored": "float16"})
    assert halved.encoder is not None and halved.encoder.model_dump()["stored"] == "float16"


@pytest.mark.parametrize(
    ("entry", "own"),
    [
        ("fedclip", {"name": "adam", "weight_decay": 0.2}),
        ("fedtpg", {"name": "sgd", "momentum": 0.9, "weight_decay": 0.0}),
        (
            {"name": "ggeur+scaffold", "set": {"inner": {"optimiser": {"name": "sgd", "lr": 0.02}}}},
            {"name": "sgd", "momentum": 0.0, "weight_decay": 0.0},
        ),
    ],
)
def test_a_rate_is_set_in_the_optimiser_that_a_method_brings_along(entry: Any, own: dict[str, Any]) -> None:
    """Not in the suite's, which such a method never uses."""
    momentum = TINY["training"] | {"optimiser": {"name": "sgd", "lr": 0.05, "momentum": 0.5}}
    suite = Suite.model_validate(TINY | {"methods": [entry], "training": momentum})
    name = suite.methods[0].name
    optimiser = suite.changed({f"{name}.optimiser.lr": 0.5}).methods[0].set["optimiser"]
    assert {key: optimiser[key] for key in own} == own
    assert optimiser["lr"] == 0.5
