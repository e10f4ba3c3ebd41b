"""Exported adapters: plain PEFT loads them on the plain backbone, with the same logits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file
from torch import Tensor, nn

from bench.config.cell import CellConfig
from bench.contract.models import Vit
from bench.engine.assembly import assemble
from bench.engine.cell import CellRun
from bench.engine.conditions import Conditions
from bench.engine.peft_export import write_adapters
from bench.errors import UserError
from bench.models.adapters import AdapterSpec
from bench.models.architectures.vit_mini import SHA256, WEIGHTS
from bench.models.base import seeded_model
from bench.models.vit import load_weights, small_vit
from bench.records.cell_folder import CellFolder
from methods.base import FedAlgorithm
from methods.core.optimisers import SGD
from methods.core.task import Task, initial_tree
from methods.core.tree import Tree
from methods.fedalt import FedALT
from methods.fedex_lora import FedExLoRA
from methods.modules.pixels import Pixels
from methods.modules.split_model import SplitModel
from tests.bench.models.test_adapters import OPTIONS
from tests.kit.cli import assert_one_sentence, call_bench
from tests.kit.contract import assert_close
from tests.kit.contract_cells import cell_config


def finished(root: Path, method: str, keep_model: bool = True) -> tuple[CellFolder, CellConfig, CellRun]:
    """A cell of one round on vit_mini, in a run below the folder."""
    whole = cell_config(method, "vit")
    training = whole.training.model_copy(update={"rounds": 1, "epochs": 1})
    config: CellConfig = whole.replaced(training=training)
    folder = CellFolder(root / "run" / "cells" / f"{method}-{config.cell_id}")
    cell = CellRun(folder, config, Conditions(executor="loop", keep_model=keep_model))
    cell.advance()
    assert cell.done
    return folder, config, cell


def plain_vit() -> nn.Module:
    vit = small_vit()
    vit.load_state_dict(load_weights(WEIGHTS, SHA256))
    return vit


def logits(backbone: nn.Module, classifier: Path, x: Tensor) -> Tensor:
    head = load_file(classifier)
    with torch.no_grad():
        return nn.functional.linear(backbone(Pixels()(x)), head["weight"], head["bias"])


def test_a_cell_s_adapters_load_with_plain_peft_and_give_its_logits(tmp_path: Path) -> None:
    _, config, cell = finished(tmp_path, "fedsdg")
    problem = assemble(config).problem
    method, task = problem.method, problem.task
    federation = cell._federation
    x = next(iter(problem.test.values())).x[:16]

    out = tmp_path / "server"
    outcome = call_bench("export", config.cell_id[:8], "--to", "peft", "--out", out, "--runs", tmp_path)
    assert outcome.code == 0, outcome.err
    assert [path.name for path in sorted(out.iterdir())] == ["classifier.safetensors", "shared"]
    loaded: Any = PeftModel.from_pretrained(plain_vit(), out / "shared")
    with torch.no_grad():
        expected = method.predict(task, federation.server, None, x)
    assert_close(logits(loaded, out / "classifier.safetensors", x), expected, tolerance=1e-5)

    out = tmp_path / "client"
    outcome = call_bench(
        *("export", config.cell_id, "--to", "peft", "--client", 1, "--out", out, "--runs", tmp_path)
    )
    assert outcome.code == 0, outcome.err
    loaded = PeftModel.from_pretrained(plain_vit(), out / "shared", adapter_name="shared")
    loaded.load_adapter(out / "private", adapter_name="private")
    loaded.base_model.set_adapter(["shared", "private"])
    own = federation.hosts.state(1)  # type: ignore[attr-defined]
    with torch.no_grad():
        personal = method.predict(task, federation.server, own, x)
    assert (personal - expected).abs().max() > 1e-6
    assert_close(logits(loaded, out / "classifier.safetensors", x), personal, tolerance=1e-5)

    outcome = call_bench("export", config.cell_id, "--to", "peft", "--client", 9, "--runs", tmp_path)
    assert_one_sentence(outcome, "--client 9: the cell has clients 0 to 4")
    assert_one_sentence(call_bench("export", "x", "--to", "pefft", "--runs", tmp_path), "did you mean 'peft'")


def test_a_cell_without_its_model_says_what_to_do(tmp_path: Path) -> None:
    _, config, _ = finished(tmp_path, "fedlora", keep_model=False)
    outcome = call_bench("export", config.cell_id, "--to", "peft", "--runs", tmp_path)
    assert_one_sentence(outcome, "has not kept its model", "--keep-model")


@pytest.mark.parametrize("name", ["dora", "rslora", "vera", "ia3", "gralora", "hira", "hra", "miss", "road"])
def test_every_kind_of_adapter_is_written_as_peft_reads_it(name: str, tmp_path: Path) -> None:
    options: dict[str, Any] = OPTIONS.get(name, {"r": 2})
    model = seeded_model(Vit(adapter=AdapterSpec(name=name, **options)), (3, 8, 8), 3, seed=0)
    draw = torch.Generator().manual_seed(0)
    trained = initial_tree(model).map(lambda leaf: leaf + 0.1 * torch.randn(leaf.shape, generator=draw))
    (folder,) = write_adapters(model, Tree(trained), tmp_path)
    loaded = PeftModel.from_pretrained(tiny_backbone(model), str(folder))
    x = torch.randint(0, 256, (4, 3, 8, 8), generator=draw, dtype=torch.uint8)
    with torch.no_grad():
        expected = Task(model, trained, 3, 1, None, 0).logits(trained, x)  # type: ignore[arg-type]
    torch.testing.assert_close(logits(loaded, tmp_path / "classifier.safetensors", x), expected)


def tiny_backbone(model: SplitModel) -> nn.Module:
    """The transformer of the contract, without adapters, with the frozen weights of this model."""
    from timm.models import VisionTransformer

    vit = VisionTransformer(
        img_size=8,
        patch_size=4,
        embed_dim=8,
        depth=2,
        num_heads=2,
        mlp_ratio=2,
        num_classes=0,
        global_pool="avg",
        class_token=False,
    )
    frozen = model.encoder[1].state_dict()  # type: ignore[index]
    plain = {name.replace(".base_layer.", "."): leaf for name, leaf in frozen.items()}
    vit.load_state_dict({name: plain[name] for name in vit.state_dict()})
    return vit


@pytest.mark.parametrize(("method", "leaf"), [(FedExLoRA(), "base_layer.weight"), (FedALT(), "router")])
def test_what_peft_has_no_place_for_is_refused(method: FedAlgorithm, leaf: str, tmp_path: Path) -> None:
    model = seeded_model(Vit(), (3, 8, 8), 3, seed=0)
    task = Task(model, initial_tree(model), 3, 2, SGD(lr=0.1), 0)
    parameters = method.parameters(task, method.server(task), method.client(task))
    with pytest.raises(UserError, match=rf"PEFT's format has no place for '.*{leaf}'"):
        write_adapters(model, parameters, tmp_path)
