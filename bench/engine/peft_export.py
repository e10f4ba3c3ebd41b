"""The trained adapters of a finished cell, in PEFT's own format.

    FOLDER/shared/adapter_config.json, adapter_model.safetensors   what travelled
    FOLDER/private/…                                                a client's own branch, if it has one
    FOLDER/classifier.safetensors                                   the head behind the backbone

A folder of an adapter loads with plain `peft.PeftModel.from_pretrained(backbone, folder)`, where `backbone`
is the network as timm or transformers make it. A gate of FedSDG is part of the private B.
"""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from bench.engine.assembly import assemble
from bench.engine.checkpoints import load_state
from bench.engine.export_request import ExportRequest
from bench.engine.problem import Problem
from bench.errors import UserError
from bench.records.cell_folder import CellFolder
from bench.records.run_folder import find_cell
from methods.base import State
from methods.core.tree import Tree
from methods.modules.lora import PRIVATE, SHARED

if TYPE_CHECKING:
    from bench.observer import Observer


def export(request: ExportRequest, observer: Observer) -> list[Path]:
    """Write the server's adapters, or those of a client's own model; returns the folders of the adapters."""
    cell, client = find_cell(request.root, request.cell), request.client
    config = cell.config()
    if config is None or not (cell.model / "server.pt").is_file():
        raise UserError(
            f"the cell in {cell.path} has not kept its model; delete that folder and run the suite again "
            "with --keep-model"
        )
    problem = assemble(config, request.data_root, clients=() if client is None else (client,)).problem
    if not problem.method.has_global_model and client is None:
        raise UserError(f"{problem.method.label} has no global model; export a client's own with --client")
    server: State = load_state(cell.model / "server.pt")
    own = None if client is None else _client_state(cell, problem, client)
    parameters = problem.method.parameters(problem.task, server, own)
    out = cell.path / "export" / ("server" if client is None else f"client-{client}")
    return write_adapters(problem.task.model, parameters, request.out or out)


def write_adapters(model: nn.Module, parameters: Tree, out: Path) -> list[Path]:
    """Write every adapter that the parameters hold, and the rest of what was trained."""
    from peft import get_peft_model_state_dict
    from safetensors.torch import save_file

    place, backbone = _backbone(model)
    kept = {name: leaf for name, leaf in parameters.items() if name.startswith("classifier.")}
    adapters = {
        name.removeprefix(place): leaf.contiguous() for name, leaf in parameters.items() if name not in kept
    }
    strange = [name for name in adapters if f".{SHARED}" not in name and f".{PRIVATE}." not in name]
    if strange:
        raise UserError(f"PEFT's format has no place for '{strange[0]}', which this method trains as well")
    config = deepcopy(backbone.peft_config[SHARED])
    config.inference_mode = True
    folders = []
    for adapter in (SHARED, PRIVATE):
        state = {
            name.replace(f".{adapter}", f".{SHARED}"): leaf
            for name, leaf in adapters.items()
            if f".{adapter}" in name
        }
        if not state:
            continue
        folder = out / adapter
        folder.mkdir(parents=True, exist_ok=True)
        found = get_peft_model_state_dict(backbone, backbone.state_dict() | state, adapter_name=SHARED)
        named = {f"base_model.model.{name}": leaf.clone() for name, leaf in found.items()}
        save_file(named, folder / "adapter_model.safetensors")
        config.save_pretrained(str(folder))
        folders.append(folder)
    if kept:
        save_file(
            {name.removeprefix("classifier."): leaf.clone() for name, leaf in kept.items()},
            out / "classifier.safetensors",
        )
    return folders


def _backbone(model: nn.Module) -> tuple[str, Any]:
    """The network that PEFT has put adapters on, and what the names of its leaves begin with."""
    found = next(((name, part) for name, part in model.named_modules() if hasattr(part, "peft_config")), None)
    if found is None:
        raise UserError(
            "this cell's model has no adapters; only models with adapters can be exported to PEFT"
        )
    name, backbone = found
    return f"{name}." if name else "", backbone


def _client_state(cell: CellFolder, problem: Problem, client: int) -> dict[str, Any]:
    if client not in range(problem.task.clients):
        raise UserError(f"--client {client}: the cell has clients 0 to {problem.task.clients - 1}")
    for file in sorted(cell.model.glob("clients-*.pt")):
        states: dict[str, Tensor] = load_state(file)
        if str(client) in states:
            state: dict[str, Any] = states[str(client)]  # type: ignore[assignment]
            return state
    return problem.method.client(problem.task)
