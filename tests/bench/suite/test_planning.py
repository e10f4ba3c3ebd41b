"""From a suite to its cells: what makes a cell the same or another one."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from bench.config.cell import identity
from bench.errors import UserError
from bench.runs.plan import make_plan
from bench.suite.loading import load_suite, suite_names
from bench.suite.model import Suite
from bench.suite.planning import PlannedCell, plan_cells
from bench.suite.sweeps import combinations
from bench.suite.unseen import in_turn
from bench.validation import validated
from methods.fedprox import FedProx
from tests.kit.cli import TINY


def plan(**changes: Any) -> list[PlannedCell]:
    return plan_cells(validated(Suite, TINY | changes, "suite file tiny.yaml"))


def only(cells: list[PlannedCell], method: str = "fedprox", seed: int = 0) -> PlannedCell:
    (cell,) = [cell for cell in cells if (cell.method, cell.seed) == (method, seed)]
    return cell


@pytest.mark.parametrize("name", suite_names())
def test_every_shipped_suite_plans_all_its_cells(name: str) -> None:
    suite = in_turn(load_suite(name), None)
    cells = plan_cells(suite)
    settings = [variant.name for variant in suite.variants] or [""]
    rows = [len(list(combinations(grid))) for grid in suite.sweep] or [len(suite.methods)]
    assert len(cells) == len(settings) * sum(rows) * suite.seeds
    assert len({cell.cell_id for cell in cells}) == len(cells)
    assert len({cell.directory for cell in cells}) == len(cells)
    assert list(dict.fromkeys(cell.variant for cell in cells)) == settings


def test_cells_come_method_by_method_and_seed_by_seed() -> None:
    assert [(cell.method, cell.label, cell.variant, cell.seed) for cell in plan()] == [
        ("fedavg", "FedAvg", "", 0),
        ("fedavg", "FedAvg", "", 1),
        ("fedprox", "FedProx", "", 0),
        ("fedprox", "FedProx", "", 1),
    ]


def test_a_configuration_says_everything_with_the_defaults_filled_in() -> None:
    cell = only(plan(), seed=1)
    assert cell.config.as_record() == {
        "schema": 1,
        "cell": cell.cell_id,
        "suite": {"name": "tiny", "version": 1},
        "variant": "",
        "dataset": {"name": "digits_mini", "seed": 0},
        "partition": {"name": "by_domain", "clients": 4, "fraction": None, "samples": 20},
        "model": {"name": "mlp", "hidden": 16},
        "training": {
            "rounds": 4,
            "epochs": 1,
            "batch_size": 10,
            "participation": 1.0,
            "validation": 0.0,
            "optimiser": cell.config.training.optimiser,
        },
        "evaluation": {"every": 2, "personal": False},
        "method": {
            "name": "fedprox",
            "version": 1,
            "hyperparameters": {"weighting": "samples", "optimiser": None, "mu": 0.01},
        },
        "seed": 1,
    }
    assert cell.config.training.optimiser.items() >= {"name": "sgd", "lr": 0.05, "momentum": 0}.items()


def test_the_hash_is_a_known_one() -> None:
    """Another value would make every result on disk a stranger.

    Worked out with: printf '{"a":[1,2.5,"β"],"seed":0}' | sha256sum
    """
    assert identity({"seed": 0, "a": [1, 2.5, "β"]}) == "b3b6dcf0f16a896d"


def test_the_hash_does_not_depend_on_the_order_of_keys() -> None:
    def shuffled(value: Any) -> Any:
        if isinstance(value, dict):
            items = [(key, shuffled(item)) for key, item in value.items()]
            random.Random(1).shuffle(items)
            return dict(items)
        return value

    config = only(plan()).config.identifying()
    other = shuffled(config)
    assert list(other) != list(config)
    assert identity(other) == identity(config)
    backwards = {key: TINY[key] for key in reversed(TINY)}
    again = plan_cells(Suite.model_validate(backwards))
    assert [cell.cell_id for cell in again] == [cell.cell_id for cell in plan()]


def test_the_hash_can_be_worked_out_from_the_configuration_on_disk() -> None:
    cell = only(plan())
    on_disk = json.loads(json.dumps(cell.config.as_record(), ensure_ascii=False))
    assert identity({key: value for key, value in on_disk.items() if key != "cell"}) == cell.cell_id


@pytest.mark.parametrize(
    "changes",
    [
        {"title": "Another title"},
        {"seeds": 5},
        {"methods": ["fedprox"]},
        {"methods": [{"name": "fedprox", "label": "Prox"}]},
        {"methods": [{"name": "fedprox", "set": {"mu": 0.01}}]},
        {"training": TINY["training"] | {"participation": 1}},
        {"dataset": {"name": "digits_mini", "seed": 0}},
    ],
    ids=str,
)
def test_a_cell_stays_the_same(changes: dict[str, Any]) -> None:
    """Whatever does not change what is computed, and defaults that are written out."""
    assert only(plan(**changes)).cell_id == only(plan()).cell_id


@pytest.mark.parametrize(
    "assignment",
    [
        {"dataset.seed": 1},
        {"partition.clients": 8},
        {"partition.samples": 21},
        {"partition": {"name": "iid", "clients": 4}},
        {"model.hidden": 17},
        {"model": {"name": "cnn"}},
        {"training.rounds": 5},
        {"training.epochs": 2},
        {"training.batch_size": 11},
        {"training.participation": 0.5},
        {"training.validation": 0.1},
        {"training.optimiser.lr": 0.06},
        {"training.optimiser.momentum": 0.9},
        {"training.optimiser": {"name": "adam", "lr": 0.05}},
        {"evaluation.every": 1},
        {"evaluation.personal": True},
        {"fedprox.mu": 0.02},
        {"fedprox.weighting": "uniform"},
        {"fedprox.optimiser": {"name": "sgd", "lr": 0.05}},
    ],
    ids=str,
)
def test_every_ingredient_makes_another_cell(assignment: dict[str, Any]) -> None:
    suite = Suite.model_validate(TINY)
    assert only(plan_cells(suite.changed(assignment))).cell_id != only(plan_cells(suite)).cell_id


@pytest.mark.parametrize("changes", [{"suite": "other"}, {"version": 2}], ids=str)
def test_the_name_and_the_version_of_the_suite_make_another_cell(changes: dict[str, Any]) -> None:
    assert only(plan(**changes)).cell_id != only(plan()).cell_id


def test_seed_method_and_version_of_the_method_make_another_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    before = plan()
    assert len({cell.cell_id for cell in before}) == 4
    monkeypatch.setattr(FedProx, "version", FedProx.version + 1)
    after = plan()
    assert only(after, "fedprox").cell_id != only(before, "fedprox").cell_id
    assert only(after, "fedavg").cell_id == only(before, "fedavg").cell_id


def test_variants_change_their_keys_and_carry_their_name() -> None:
    cells = plan(
        seeds=1,
        variants=[
            {"name": "β=0.1", "set": {"partition": {"name": "dirichlet", "clients": 4, "beta": 0.1}}},
            {"name": "μ=1", "set": {"fedprox.mu": 1}},
            {"name": "as it is", "set": {}},
        ],
    )
    assert [(cell.variant, cell.method) for cell in cells] == [
        ("β=0.1", "fedavg"),
        ("β=0.1", "fedprox"),
        ("μ=1", "fedavg"),
        ("μ=1", "fedprox"),
        ("as it is", "fedavg"),
        ("as it is", "fedprox"),
    ]
    assert [cell.config.variant for cell in cells] == [cell.variant for cell in cells]
    assert cells[0].config.partition.options["beta"] == 0.1
    assert [cell.config.method.hyperparameters.get("mu") for cell in cells[1::2]] == [0.01, 1.0, 0.01]
    assert cells[4].config.partition.options["samples"] == 20


def test_a_plan_knows_the_domains_of_all_its_variants(tmp_path: Path) -> None:
    suite = Suite.model_validate(
        TINY
        | {
            "variants": [
                {"name": "mini", "set": {}},
                {"name": "office", "set": {"dataset": {"name": "office_caltech"}}},
            ],
            "table": {"kind": "variants"},
        }
    )
    plan = make_plan(suite, tmp_path, {})
    plan.folder.path.mkdir(parents=True)
    plan.write()
    domains = json.loads(plan.folder.plan.read_text())["domains"]
    assert {"mnist", "optdigits", "blended", "fonts", "amazon", "caltech", "dslr", "webcam"} == set(domains)


def test_rows_of_one_method_need_different_hyperparameters() -> None:
    weak, strong = ({"name": "fedprox", "label": f"μ={mu}", "set": {"mu": mu}} for mu in (0.1, 1))
    assert [cell.label for cell in plan(methods=[weak, strong], seeds=1)] == ["μ=0.1", "μ=1"]
    with pytest.raises(UserError, match="'FedProx' and 'default' of the suite are the same"):
        plan(methods=["fedprox", {"name": "fedprox", "label": "default", "set": {"mu": 0.01}}])


@pytest.mark.parametrize(
    ("changes", "row"),
    [
        ({"methods": ["fedprox", {"name": "fedprox", "set": {"mu": 0.5}}]}, "FedProx"),
        ({"methods": ["fedavg", {"name": "fedprox", "label": "FedAvg"}]}, "FedAvg"),
        ({"variants": [{"name": "a", "set": {"partition.samples": n}} for n in (5, 6)]}, "FedAvg a"),
    ],
)
def test_rows_that_a_table_could_not_tell_apart_are_refused(changes: dict[str, Any], row: str) -> None:
    with pytest.raises(UserError, match=f"two rows '{row}'; give each a 'label'"):
        plan(**changes)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"methods": ["fedagv"]}, "unknown method 'fedagv'; did you mean 'fedavg'"),
        ({"methods": [{"name": "fedprox", "set": {"muu": 1}}]}, "unknown key 'muu'; did you mean 'mu'"),
        ({"methods": [{"name": "fedprox", "set": {"mu": -1}}]}, "method 'fedprox': mu = -1"),
        ({"dataset": {"name": "digits_mni"}}, "did you mean 'digits_mini'"),
        ({"dataset": {}}, "dataset: key 'name' is missing"),
        ({"dataset": {"name": "digits_mini", "sede": 1}}, "did you mean 'seed'"),
        ({"partition": {"name": "by_domian", "clients": 4}}, "did you mean 'by_domain'"),
        ({"model": {"name": "ccn"}}, "unknown model 'ccn'; did you mean 'cnn'"),
        ({"model": {"name": "mlp", "hiden": 3}}, "did you mean 'hidden'"),
        ({"model": {}}, "model: key 'name' is missing"),
        ({"training": TINY["training"] | {"optimiser": {"name": "sdg", "lr": 1}}}, "did you mean 'sgd'"),
        ({"training": TINY["training"] | {"optimiser": {"name": "sgd", "rl": 1}}}, "did you mean 'lr'"),
        ({"training": TINY["training"] | {"optimiser": {"lr": 1}}}, "key 'name' is missing"),
        (
            {"training": TINY["training"] | {"optimiser": {"name": "sgd", "beta": 1}}},
            "known: clip_norm, groups, lr, momentum, name, weight_decay",
        ),
        (
            {"training": TINY["training"] | {"optimiser": {"name": "sgd", "lr": float("inf")}}},
            "should be a finite number",
        ),
        ({"training": TINY["training"] | {"rounds": True}}, "training.rounds = True: input should be"),
        ({"methods": "fedavg"}, "methods = 'fedavg': give a list"),
        ({"suite": "../other"}, "it names a folder; use letters"),
        ({"suite": ""}, "it names a folder; use letters"),
    ],
    ids=str,
)
def test_what_a_suite_asks_for_in_vain_is_named(changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(UserError) as caught:
        plan(**changes)
    assert expected in str(caught.value)


def test_folders_are_named_after_method_seed_and_hash() -> None:
    cell = only(plan(), seed=1)
    assert cell.directory == f"cells/fedprox-s1-{cell.cell_id}"
