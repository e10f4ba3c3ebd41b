"""What a search may try: spaces of methods around methods, sweeps, grids, and what is drawn from them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.cli.templates import METHOD
from bench.errors import UserError
from bench.search.checks import check_search
from bench.search.journal import Outcome, Trial
from bench.search.optuna_study import OptunaStudy
from bench.search.plan import Search, searches_of
from bench.search.preview import preview
from bench.search.request import TuneRequest
from bench.search.space import SearchSpace, describe, search_space
from bench.search.suggest import suggest
from bench.suite.loading import load_suite, suite_names
from bench.suite.model import Suite
from bench.suite.planning import plan_cells
from bench.suite.sweep_cells import row_settings
from search_spaces.model import Distribution
from search_spaces.writing import write_space
from tests.kit.cli import TINY
from tests.kit.tune import one_search, suite


def space_of(method: str, name: str = "wide", sweeps: dict[str, list[Any]] | None = None) -> SearchSpace:
    return search_space(method, name, plan_cells(suite(method))[0].config, sweeps or {})


def search(
    method: str = "fedprox", space: str = "wide", algorithm: str = "random", setting: Suite | None = None
) -> Search:
    return one_search(setting or suite(method), method, space, algorithm, "none", 0, Path("runs"))


def trials(found: SearchSpace, algorithm: str, count: int, seed: int = 0) -> list[Trial]:
    past: list[Trial] = []
    for number in range(count):
        values = suggest(algorithm, found, seed, number, past)
        if values is None:
            break
        past.append(Trial(number, values, "finished", validation=number / 100, rounds=4))
    return past


def test_the_wide_space_has_ranges_and_the_suites_own_values_as_default() -> None:
    found = space_of("fedprox")
    assert found.domains["mu"].kind == "log_uniform"
    assert found.default == {"mu": 0.01, "optimiser.lr": TINY["training"]["optimiser"]["lr"]}
    assert found.size is None


def test_a_key_with_one_value_in_the_paper_keeps_the_suites_value() -> None:
    found = space_of("fedsr", "paper")
    assert (list(found.domains), found.kept) == (["cmi"], ("l2r", "optimiser.lr"))
    assert found.size == 2
    assert describe(found) == "cmi 0.0005/0.001; l2r, optimiser.lr as in the suite"


def test_where_the_paper_prints_nothing_nothing_is_searched() -> None:
    found = space_of("fedavg", "paper")
    assert not found.domains
    assert describe(found) == "nothing to choose: the paper prints no grid; optimiser.lr as in the suite"
    assert suggest("random", found, 0, 0, []) == {}
    assert suggest("random", found, 0, 1, [Trial(0, {})]) is None
    assert list(space_of("fedavg", "paper", {"optimiser.lr": [0.1, 1.0]}).domains) == ["optimiser.lr"]


def test_a_file_of_ones_own_can_be_tuned(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(METHOD.filled("mine"), encoding="utf-8")
    request = TuneRequest(suite="quickstart_cnn", methods=(str(mine),), trials=3, out=tmp_path / "runs")
    (found,) = searches_of(request)
    assert found.method == "mine"
    assert list(found.space.domains) == ["mu", "optimiser.lr"]
    (cell,) = found.cells({"mu": 0.02, "optimiser.lr": 0.5})
    assert cell.config.method.hyperparameters["mu"] == 0.02
    *_, line = preview([found], request.limits())
    assert line.startswith(
        "  Mine: mu 0.001–0.1 log, optimiser.lr 0.0001–1.0 log; derived from the fields of"
    )
    assert line.endswith(f"write it down with `bench new space {mine}`")
    write_space(mine)
    *_, line = preview(searches_of(request), request.limits())
    assert "derived" not in line


def test_a_sweep_takes_the_place_of_a_distribution() -> None:
    found = space_of("fedprox", "paper", {"optimiser.lr": [0.01, 0.02]})
    assert found.size == 8
    assert found.digest != space_of("fedprox", "paper").digest


def test_the_rate_is_that_of_the_methods_own_optimiser_where_it_has_one() -> None:
    entry = {"name": "scaffold", "set": {"optimiser": {"name": "sgd", "lr": 0.02}}}
    found = search("scaffold", setting=suite(entry))
    assert found.space.default["optimiser.lr"] == 0.02
    (cell,) = found.cells({"optimiser.lr": 0.3})
    assert cell.config.method.hyperparameters["optimiser"]["lr"] == 0.3


def test_the_rate_reaches_a_method_without_an_optimiser_and_nothing_else_changes() -> None:
    (cell,) = search("fedavg").cells({"optimiser.lr": 0.3})
    own = cell.config.method.hyperparameters["optimiser"]
    assert own == cell.config.training.optimiser | {"lr": 0.3}
    assert cell.config.training.optimiser["lr"] == TINY["training"]["optimiser"]["lr"]


def test_the_cells_of_a_search_hold_samples_out_and_have_no_test() -> None:
    (cell,) = search().cells({"mu": 0.5})
    assert cell.config.training.validation == 0.2
    assert cell.config.evaluation.test is False
    assert cell.config.method.hyperparameters["mu"] == 0.5


def test_grid_points_are_the_cartesian_product() -> None:
    found = space_of("fedprox", "paper", {"optimiser.lr": [0.01, 0.02]})
    points = [found.point(index) for index in range(8)]
    expected = [{"mu": mu, "optimiser.lr": lr} for mu in (0.001, 0.01, 0.1, 1.0) for lr in (0.01, 0.02)]
    assert points == expected


def test_whole_numbers_can_be_counted() -> None:
    found = SearchSpace("wide", {"k": Distribution.model_validate({"int": [2, 4]})}, {"k": 3})
    assert {trial.values.get("k", 3) for trial in trials(found, "random", 9)} == {2, 3, 4}
    assert len(trials(found, "random", 9)) == found.size == 3


def test_draws_follow_the_distributions() -> None:
    domains = {
        "a": Distribution.model_validate({"log_uniform": [0.001, 10.0]}),
        "b": Distribution.model_validate({"int": [1, 3]}),
        "c": Distribution.model_validate({"choice": ["x", True]}),
        "d": Distribution.model_validate({"uniform": [2.0, 4.0]}),
    }
    found = SearchSpace("wide", domains, {})
    drawn = [found.draw(np.random.default_rng(seed)) for seed in range(2000)]
    assert all(found.covers(values) for values in drawn)
    assert np.mean([np.log10(values["a"]) for values in drawn]) == pytest.approx(-1, abs=0.1)
    assert np.mean([values["d"] for values in drawn]) == pytest.approx(3, abs=0.05)
    assert set(Counter(values["b"] for values in drawn)) == {1, 2, 3}
    assert Counter(str(values["c"]) for values in drawn)["True"] == pytest.approx(1000, abs=100)


@pytest.mark.parametrize("algorithm", ["random", "optuna", "grid"])
def test_trial_0_is_the_default_and_no_configuration_comes_twice(algorithm: str) -> None:
    found = space_of("fedprox", "paper", {"optimiser.lr": [0.01, 0.02, TINY["training"]["optimiser"]["lr"]]})
    tried = trials(found, algorithm, 100)
    assert tried[0].values == {}
    assert len(tried) == 12, "eleven other points, then nothing is left"
    assert len({str(found.default | trial.values) for trial in tried}) == 12


def test_a_part_of_a_grid_is_drawn_with_the_seed_and_begins_the_larger_part() -> None:
    found = space_of("fedprox", "paper", {"optimiser.lr": [0.01, 0.02, 0.03]})
    few, many, others = trials(found, "grid", 5), trials(found, "grid", 9), trials(found, "grid", 9, seed=1)
    assert few == many[:5]
    assert many != others


@pytest.mark.parametrize("algorithm", ["random", "optuna"])
def test_the_same_past_gives_the_same_suggestion(algorithm: str) -> None:
    """So a search that was killed goes on as if it had not been."""
    found = space_of("fedlsa")
    whole = trials(found, algorithm, 9)
    again = suggest(algorithm, found, 0, 8, whole[:8])
    assert again == whole[8].values
    assert suggest(algorithm, found, 1, 8, whole[:8]) != again


@pytest.mark.parametrize(
    ("name", "sweeps", "count"), [("wide", {}, 30), ("paper", {"optimiser.lr": [0.01, 0.02, 0.03]}, 1 + 12)]
)
def test_a_study_that_grew_suggests_what_a_new_one_does(
    name: str, sweeps: dict[str, list[Any]], count: int
) -> None:
    """Trials are suggested five at a time and end in different ways; a small space is tried out."""
    found = space_of("fedprox", name, sweeps)
    study, past = OptunaStudy(found), list[Trial]()
    for number in range(30):
        values = suggest("optuna", found, 0, number, past, study)
        assert values == suggest("optuna", found, 0, number, past)
        if values is None:
            break
        past.append(Trial(number, values))
        if number % 5 == 4:
            past = [_ended(trial) for trial in past]
    assert len(past) == count


def _ended(trial: Trial) -> Trial:
    outcome: Outcome = ("finished", "stopped", "failed", "finished")[trial.number % 4]
    measured = None if outcome == "failed" else 1 / (1 + trial.number)
    return replace(trial, outcome=outcome, validation=measured, rounds=4)


def test_tpe_moves_to_where_scores_are_high() -> None:
    """On −(log10 lr + 2)² its draws come nearer to the top than uniform ones."""
    found = space_of("fedavg")

    def distance(algorithm: str) -> float:
        past: list[Trial] = []
        for number in range(40):
            values = suggest(algorithm, found, 0, number, past)
            assert values is not None
            rate = (found.default | values)["optimiser.lr"]
            past.append(Trial(number, values, "finished", -((np.log10(rate) + 2.5) ** 2), 4))
        return float(np.mean([abs(np.log10(trial.values["optimiser.lr"]) + 2.5) for trial in past[20:]]))

    assert distance("optuna") < 0.5 * distance("random")


def test_tpe_takes_open_stopped_and_failed_trials_and_a_default_outside_of_the_space() -> None:
    found = space_of("fedprox", "paper", {"optimiser.lr": [0.2, 0.3]})
    assert not found.covers(found.default)
    past = [Trial(0, {}, "finished", 0.3, 4), Trial(1, {"mu": 0.1, "optimiser.lr": 0.2})]
    past += [
        Trial(2, {"mu": 1.0, "optimiser.lr": 0.2}, "stopped", 0.2, 2),
        Trial(3, {"mu": 1.0, "optimiser.lr": 0.3}, "failed", None, 1, "diverged: x"),
    ]
    values = suggest("optuna", found, 0, 4, past)
    assert values is not None and found.covers(values)


def test_the_identity_of_a_search_is_that_of_what_its_trials_are() -> None:
    base = search()
    assert base.identity == search().identity
    others = [
        search(space="paper"),
        search(algorithm="optuna"),
        search(setting=suite(seeds=2)),
        search(setting=suite("fedprox", version=2)),
        search(setting=suite().changed({"training.rounds": 5})),
    ]
    assert len({base.identity, *(other.identity for other in others)}) == 6


def test_every_configuration_is_run_under_each_swept_value_of_the_data() -> None:
    setting = suite(seeds=2).model_copy(update={"sweep": ({"partition.samples": [15, 20]},)})
    found = one_search(setting, "fedprox", "wide", "random", "none", 0, Path("runs"))
    cells = found.cells({"mu": 0.5})
    assert [(cell.config.partition.options["samples"], cell.seed) for cell in cells] == [
        (15, 0),
        (15, 1),
        (20, 0),
        (20, 1),
    ]
    assert found.cost == 4 * TINY["training"]["rounds"]


def test_values_that_a_method_cannot_work_with_are_found_before_the_start(tmp_path: Path) -> None:
    setting = suite("scaffold").model_copy(update={"sweep": ({"scaffold.server_lr": [1.0, -1.0]},)})
    refused = one_search(setting, "scaffold", "paper", "grid", "none", 0, tmp_path)
    with pytest.raises(UserError, match=r"server_lr = -1\.0"):
        check_search(refused, TuneRequest(refused.suite, trials=4), print)
    momentum = {"name": "sgd", "lr": 0.1, "momentum": 0.9}
    setting = suite("scaffold").changed({"training.optimiser": momentum})
    with pytest.raises(UserError, match="needs plain SGD"):
        check_search(search("scaffold", setting=setting), TuneRequest(setting, trials=4), print)


def test_grid_needs_choices() -> None:
    with pytest.raises(UserError, match=r"mu, optimiser\.lr of FedProx have ranges"):
        search(algorithm="grid")


def searches(setting: Suite, **options: Any) -> dict[str, Search]:
    return {found.row: found for found in searches_of(TuneRequest(setting, **options))}


def test_every_row_of_a_method_has_a_search() -> None:
    found = searches(suite("fedprox", {"name": "fedprox", "label": "strong", "set": {"mu": 1}}))
    assert {row: each.space.default["mu"] for row, each in found.items()} == {"FedProx": 0.01, "strong": 1}
    assert len({each.directory for each in found.values()}) == 2
    assert list(searches(found["strong"].suite, methods=["strong"])) == ["strong"]


def test_what_is_set_is_not_searched() -> None:
    whole = searches(suite())["FedProx"]
    assert set(whole.space.domains) == {"mu", "optimiser.lr"} and not whole.keys_chosen
    variant = suite(variants=[{"name": "strong", "set": {"fedprox.mu": 1.0}}])
    cases: list[tuple[Suite, dict[str, Any]]] = [
        (suite(), {"overrides": {"fedprox.mu": 0.5}}),
        (suite(), {"overrides": {"FedProx.mu": 0.5}}),
        (suite(), {"sweeps": {"optimiser.lr": [0.1, 0.2], "fedprox.mu": [0.5]}}),
        (variant, {}),
    ]
    for setting, options in cases:
        found = searches(setting, **options)["FedProx"]
        assert list(found.space.domains) == ["optimiser.lr"] and found.keys_chosen
        (mu,) = {cell.config.method.hyperparameters["mu"] for cell in found.cells({"optimiser.lr": 0.1})}
        assert mu == (1.0 if setting is variant else 0.5)
    whole_optimiser = {"training.optimiser": {"name": "sgd", "lr": 0.2}}
    for fixed in ({"training.optimiser.lr": 0.2}, {"optimiser.lr": 0.2}, whole_optimiser):
        found = searches(suite(), overrides=fixed)["FedProx"]
        assert list(found.space.domains) == ["mu"]
        assert row_settings(found.cells({})[0].config)["optimiser"]["lr"] == 0.2


def test_what_is_swept_is_all_that_is_searched() -> None:
    found = searches(suite("fedavg", "fedlsa"), sweeps={"fedlsa.lam": [0.1, 0.5], "fedlsa.tau": [0.1, 0.2]})
    assert found["FedLSA"].space.size == 4
    assert found["FedAvg"].space.domains == {}


def test_swept_settings_are_crossed_and_every_configuration_is_run_under_each() -> None:
    swept = {"partition.samples": [15, 20], "training.epochs": [1, 2]}
    found = searches(suite(), sweeps=swept)["FedProx"]
    assert [cell.variant for cell in found.cells({"mu": 0.5})] == [
        f"samples={samples}, epochs={epochs}" for samples in (15, 20) for epochs in (1, 2)
    ]
    assert set(found.space.domains) == {"mu", "optimiser.lr"}


@pytest.mark.parametrize("name", suite_names())
def test_every_shipped_suite_can_be_tuned(name: str) -> None:
    found = searches_of(TuneRequest(name))
    shipped = load_suite(name)
    assert len(found) == len(shipped.methods)
    assert len({search.directory for search in found}) == len(found)
    for search in found:
        assert search.cells({}) and all(not cell.config.evaluation.test for cell in search.cells({}))


def test_the_weights_of_fedsdgs_penalties_can_be_searched_in_every_one_of_its_rows() -> None:
    for search in searches_of(TuneRequest("quickstart_fedsdg", methods=["fedsdg"])):
        assert {"lam1", "lam2"} <= set(search.space.domains)


def test_a_method_around_another_has_the_keys_of_both() -> None:
    found = search("ggeur+fedprox")
    domains = list(found.space.domains)
    assert domains[0] == "step1_samples"
    assert domains[-2:] == ["inner.mu", "optimiser.lr"]
    assert found.space.default["inner.mu"] == 0.01
    (cell,) = found.cells({"samples_per_class": 100, "inner.mu": 0.9})
    hyperparameters = cell.config.method.hyperparameters
    assert (hyperparameters["samples_per_class"], hyperparameters["inner"]["mu"]) == (100, 0.9)


def test_the_rate_is_that_of_the_optimiser_inside_a_wrapper() -> None:
    inner = {"optimiser": {"name": "sgd", "lr": 0.02}}
    entry = {"name": "ggeur+scaffold", "set": {"inner": inner}}
    found = search("ggeur+scaffold", setting=suite(entry))
    assert found.space.default["optimiser.lr"] == 0.02
    (cell,) = found.cells({"optimiser.lr": 0.3})
    assert cell.config.method.hyperparameters["optimiser"]["lr"] == 0.3
    assert cell.config.method.hyperparameters["optimiser"]["momentum"] == 0


@pytest.mark.parametrize(
    ("partition", "searched", "idle"),
    [
        ({"name": "by_domain", "clients": 4, "samples": 20}, "step2_samples", "samples_per_class"),
        ({"name": "dirichlet", "clients": 4, "beta": 0.5}, "samples_per_class", "step1_samples"),
    ],
)
def test_keys_without_effect_under_a_partition_are_not_searched(
    partition: dict[str, Any], searched: str, idle: str
) -> None:
    config = plan_cells(suite("ggeur+fedavg", partition=partition))[0].config
    domains = search_space("ggeur+fedavg", "wide", config, {}).domains
    assert searched in domains and idle not in domains
