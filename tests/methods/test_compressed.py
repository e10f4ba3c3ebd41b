"""`compressed+METHOD`: what is sent, byte by byte, and what the server makes of it."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from bench.contract.method_under_test import MethodUnderTest
from bench.contract.rules.divergence import DIVERGENCE
from bench.contract.rules.executors import EXECUTORS
from bench.contract.rules.randomness import RANDOMNESS
from bench.contract.rules.rounds import TENSORS
from bench.engine.clients.loop import LoopHost
from bench.suite.methods import METHODS
from methods.shared.compression import bits_for, from_quantised, packed, quantised, unpacked
from methods.shared.vectors import flattened
from tests.kit.contract import PLAIN, in_one_process, make_method, run, tiny_problem, tiny_task

NUMBERS = 6 * 8 + 8 + 8 * 3 + 3  # of the tiny MLP
MODEL = 4 * NUMBERS
CLIENTS = 3


@pytest.mark.parametrize(
    ("options", "each"),
    [
        ({"share": 0.1}, 9 * (4 + 4)),  # ⌈8.3⌉ values and positions
        ({"share": 1.0}, NUMBERS * 8),
        ({"kind": "qsgd"}, 42 + 4),  # 83 numbers of 4 bits in 42 bytes, and one length
        ({"kind": "qsgd", "levels": 1}, 21 + 4),  # of 2 bits
        ({"kind": "qsgd", "levels": 127, "bucket": 10}, 83 + 9 * 4),  # of 8 bits, nine buckets
        ({"kind": "qsgd", "levels": 3, "bucket": 83}, 32 + 4),  # 249 bits
    ],
    ids=str,
)
@in_one_process
def test_bytes_are_those_worked_out_by_hand(options: dict[str, Any], each: int, kind: Any) -> None:
    problem = tiny_problem(make_method("compressed+fedavg", **options))
    record = run(problem, kind(problem), rounds=0).advance()
    assert (record["bytes_up"], record["bytes_down"]) == (CLIENTS * each, CLIENTS * MODEL)


def test_what_a_method_sends_beside_the_model_travels_whole() -> None:
    problem = tiny_problem(make_method("compressed+scaffold"))
    assert run(problem, LoopHost(problem), rounds=0).advance()["bytes_up"] == CLIENTS * (72 + MODEL)


def test_integer_buffers_travel_whole() -> None:
    problem = tiny_problem(make_method("compressed+fedavg", share=1.0), "norm", batch_size=5)
    federation = run(problem, LoopHost(problem), rounds=1)
    counter = federation.server["inner"]["model"]["encoder.1.num_batches_tracked"]
    assert (counter.dtype, int(counter)) == (torch.int64, 4)  # two epochs of two batches


def test_if_everything_is_sent_the_server_has_fedavgs_model() -> None:
    ends = []
    for name, options in (("fedavg", {}), ("compressed+fedavg", {"share": 1.0})):
        problem = tiny_problem(make_method(name, **options))
        server = run(problem, LoopHost(problem), rounds=2).server
        ends.append(flattened(server.get("inner", server)["model"]))
    torch.testing.assert_close(*ends, atol=1e-6, rtol=0)


def test_rounding_is_unbiased_and_to_the_next_level() -> None:
    vector = torch.randn(50, generator=torch.Generator().manual_seed(0))
    draw = torch.Generator().manual_seed(1)
    bucket, levels = 20, 3
    found = torch.stack(
        [
            from_quantised(
                quantised(vector, levels, bucket, torch.rand(50, generator=draw)), 50, levels, bucket
            )
            for _ in range(4000)
        ]
    )
    norms = torch.stack([part.norm() for part in vector.split(bucket)]).repeat_interleave(bucket)[:50]
    steps = norms / levels
    assert bool(((found - vector).abs() <= steps + 1e-6).all())
    # the standard error of a mean of 4000 with deviations of at most half a step
    assert bool(((found.mean(dim=0) - vector).abs() < 4.5 * 0.5 * steps / math.sqrt(4000)).all())


@pytest.mark.parametrize("levels", [1, 3, 7, 100, 127])
def test_packing_loses_nothing(levels: int) -> None:
    codes = torch.randint(0, 2 * levels + 1, (37,), generator=torch.Generator().manual_seed(levels))
    bits = bits_for(levels)
    sent = packed(codes, bits)
    assert (sent.dtype, len(sent)) == (torch.uint8, -(-37 * bits // 8))
    assert torch.equal(unpacked(sent, bits, 37), codes)


def test_a_vector_of_zeros_stays_one() -> None:
    sent = quantised(torch.zeros(7), 7, 4, torch.full((7,), 0.999))
    assert torch.equal(from_quantised(sent, 7, 7, 4), torch.zeros(7))


def test_rounding_keeps_the_contract_too() -> None:
    subject = MethodUnderTest(METHODS.load("compressed+fedavg"), {"kind": "qsgd"})
    for rule in (EXECUTORS, DIVERGENCE, RANDOMNESS, TENSORS):
        verdict = rule.applied_to(subject)
        assert not verdict.findings, str(verdict)


def test_a_method_without_a_model_to_send_is_refused() -> None:
    with pytest.raises(ValueError, match="compresses updates of models, but FedProto sends none"):
        make_method("compressed+fedproto").check(tiny_task("mlp", PLAIN, 3, 0))


def test_what_was_not_sent_needs_a_method_that_sends_the_same_leaves_again() -> None:
    task = tiny_task("vit", PLAIN, 3, 0)
    with pytest.raises(ValueError, match=r"in which RoLoRA sends other parameters: set kind to qsgd$"):
        make_method("compressed+rolora").check(task)
    problem = tiny_problem(make_method("compressed+rolora", kind="qsgd"), "vit")
    rounds = {n: run(problem, LoopHost(problem), n).server["inner"]["model"] for n in (1, 2)}
    factors = {
        n: {name.split(".lora_")[1][0] for name in model if ".lora_" in name} for n, model in rounds.items()
    }
    assert factors == {1: {"A"}, 2: {"B"}}
