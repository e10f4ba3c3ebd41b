"""The path to a GPU, on a device that only pretends: nothing mixed, few waits, few kernels; and precision."""

from __future__ import annotations

import pytest
import torch

from bench.contract.fixtures import tiny_problem
from bench.contract.runs import run
from bench.engine.clients.base import Host, are_finite
from bench.engine.devices import check_precision, sent_orders, sent_together
from bench.errors import UserError
from bench.suite.loading import load_suite
from bench.suite.methods import METHODS
from methods.core.batches import Batch
from methods.core.optimisers import SGD
from methods.core.training import ONE_CLIENT, train
from methods.core.tree import Tree
from tests.kit.contract import every_method, in_one_process, make_method
from tests.kit.device_costs import HOSTS, can_be_stacked, kernels_per_step, measured_round
from tests.kit.pretend_device import DEVICE, PretendDevice

FIGURES = 8
"""Waits that a method's own figures may add to a round: `observe` gives numbers to the host."""


@every_method
@pytest.mark.parametrize("executor", HOSTS)
def test_nothing_is_mixed_and_the_host_seldom_waits(name: str, executor: str) -> None:
    if executor == "stacked" and not can_be_stacked(name):
        pytest.skip("batch norm cannot be stacked")
    found = measured_round(name, executor)
    assert not found.mixed
    assert found.kernels.total() > 0 or METHODS.load(name).one_round
    if executor == "stacked":
        by_engine = {place: times for place, times in found.waits.items() if _is_the_engines(place)}
        assert sum(by_engine.values()) <= 2, by_engine
        assert found.waits.total() <= 2 + FIGURES * 3, found.waits


def _is_the_engines(place: str) -> bool:
    return any(file in place for file in ("stacked.py", "base.py", "devices.py", "batches.py", "training.py"))


@pytest.mark.parametrize(
    ("name", "optimiser", "most"),
    [("fedavg", "sgd", 26), ("fedavg", "adam", 32), ("fedrep", "sgd", 220), ("fedrep", "adam", 305)],
)
def test_a_stacked_step_takes_few_kernels(name: str, optimiser: str, most: int) -> None:
    assert kernels_per_step(name, "stacked", optimiser) <= most


def test_the_pretended_device_notices_what_it_is_there_for() -> None:
    with PretendDevice() as device:
        there, here = torch.ones(3, device=DEVICE), torch.ones(3)
        device.counts.reset()
        total = (there * 2).sum()
        assert device.counts.kernels == {"mul": 1, "sum": 1}
        assert not device.counts.waits and not device.counts.mixed
        assert float(total) == 6.0
        assert device.counts.waits.total() == 1
        there.cpu()
        here.to(DEVICE)
        assert device.counts.waits.total() == 3
        there[there > 0]
        assert device.counts.waits.total() == 4
        there + here
        assert device.counts.mixed.total() == 1


def test_copies_in_one_piece_keep_values_shapes_and_types() -> None:
    parts = {
        "order": torch.arange(12).view(2, 3, 2),
        "mask": torch.tensor([[1.0, 0.0], [1.0, 1.0]]),
        "live": torch.tensor([[True], [False]]),
        "none": None,
        "key": torch.tensor([2**62 + 1, 5]),
    }
    orders = [torch.randperm(5), torch.randperm(5), torch.randperm(2)]
    with PretendDevice() as device:
        there = sent_together(parts, DEVICE)
        assert device.counts.waits.total() == 1
        epochs = sent_orders(orders, DEVICE)
        assert device.counts.waits.total() == 2
        for name, part in parts.items():
            copy = there[name]
            if part is None:
                assert copy is None
            else:
                assert copy is not None and copy.dtype == part.dtype and copy.device.type == DEVICE.type
                assert torch.equal(copy.cpu(), part)
        assert all(torch.equal(a.cpu(), b) for a, b in zip(epochs, orders, strict=True))


def test_finiteness_is_asked_of_all_at_once() -> None:
    nests = [{"a": torch.ones(2)}, {"a": torch.tensor([1.0, float("nan")])}, {}, {"n": torch.tensor(3)}]
    assert are_finite(nests) == [True, False, True, True]


@in_one_process
def test_bfloat16_learns_what_float32_learns(kind: type[Host]) -> None:
    errors = {}
    for precision in (None, torch.bfloat16):
        problem = tiny_problem(make_method("fedavg"), "mlp", epochs=4)
        object.__setattr__(problem.task, "mode", ONE_CLIENT._replace(precision=precision))
        federation = run(problem, kind(problem), 6)
        model = federation.server["model"]
        assert all(leaf.dtype == torch.float32 for leaf in model.values())
        errors[precision] = federation.evaluate(personal=False)["test"], model
    plain, rough = errors[None], errors[torch.bfloat16]
    assert any(not torch.equal(plain[1][name], rough[1][name]) for name in plain[1])
    for domain, accuracy in plain[0].items():
        assert abs(accuracy - rough[0][domain]) <= 0.1
        assert rough[0][domain] > 0.6


def test_a_loss_in_float16_is_scaled_so_that_small_gradients_survive() -> None:
    start = Tree({"w": torch.zeros(1, 1)})
    x = torch.full((4, 1), 1e-4)
    batch = Batch(x, torch.zeros(4))
    mode = ONE_CLIENT._replace(precision=torch.float16)

    def loss(params: Tree, batch: Batch) -> torch.Tensor:
        return 1e-4 * (batch.x @ params["w"]).float().sum()  # a gradient of 4e-8, which float16 has not

    trained = train(start, loss, [batch], SGD(lr=1.0), mode=mode)
    assert float(trained["w"]) == pytest.approx(-4e-8, rel=0.02)


def test_precision_is_part_of_the_configuration_only_where_it_is_chosen() -> None:
    suite = load_suite("quickstart")
    assert "precision" not in suite.training.model_dump()
    assert suite.changed({"training.precision": "bf16"}).training.model_dump()["precision"] == "bf16"
    check_precision("bf16", "cpu")
    check_precision("fp16", "cuda")
    for precision in ("fp16", "tf32"):
        with pytest.raises(UserError, match="needs CUDA"):
            check_precision(precision, "cpu")
