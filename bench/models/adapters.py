"""Adapters on a backbone, made by PEFT: `with_adapter(module, AdapterSpec(...), targets)`.

The section `adapter: {name: lora, r: 8, alpha: 16, targets: [...]}` of a model is an `AdapterSpec`. Further
keys are options of PEFT's own configuration class, such as `init_lora_weights: pissa`.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import nn

from bench.errors import UserError, nearest
from methods.core.random import derive
from methods.modules.lora import PRIVATE, SHARED, adapted_layers, first_factor

RANK, ALPHA = 8, 16.0
ALIASES: dict[str, tuple[str, dict[str, Any]]] = {
    "dora": ("lora", {"use_dora": True}),
    "rslora": ("lora", {"use_rslora": True}),
}
PROVEN: dict[str, dict[str, Any]] = {
    "lora": {},
    "vera": {"save_projection": False},  # drawn again from its seed, so that it does not travel
    "ia3": {"feedforward_modules": []},
    "gralora": {},
    "hira": {},
    "hra": {},
    "miss": {},
    "road": {},
}
"""PEFT's kinds that train on linear layers, with the same result in a stack of clients; with presets."""
SET_BY_US = frozenset({"peft_type", "task_type", "inference_mode", "target_modules"})


def _is_none(value: object) -> bool:
    return value is None


class AdapterSpec(BaseModel):
    """The kind of adapter, its options, and the layers that get one."""

    model_config = ConfigDict(frozen=True, extra="allow", use_attribute_docstrings=True)

    name: str = "lora"
    """PEFT's name of the kind of adapter, or `dora` or `rslora`."""
    r: int | None = Field(default=None, gt=0, exclude_if=_is_none)
    """The rank; None: 8, if the kind has one."""
    alpha: float | None = Field(default=None, gt=0, exclude_if=_is_none)
    """The numerator of the branches' scale; None: 16, if the kind has one."""
    targets: str | tuple[str, ...] | None = Field(default=None, exclude_if=_is_none)
    """How the names of the adapted layers end, or `all-linear`; None: the backbone's usual ones."""


def with_adapter(module: nn.Module, spec: AdapterSpec, targets: Sequence[str]) -> nn.Module:
    """Freeze the module and put adapters on its layers, in place; `targets` are its usual ones.

    Initial weights come from PyTorch's generator, like those of every model. LoRA layers also get the place
    of a private branch (see `methods/modules/lora.py`).
    """
    from peft.mapping import PEFT_TYPE_TO_TUNER_MAPPING

    config = peft_config(spec, targets)
    module.requires_grad_(False)
    seed = derive(torch.initial_seed(), "adapters")
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(seed)
        try:
            PEFT_TYPE_TO_TUNER_MAPPING[config.peft_type](module, config, adapter_name=SHARED)
        except (ValueError, TypeError, NotImplementedError) as error:
            reason = str(error).split(". ")[0]
            raise UserError(f"model.adapter: PEFT refuses it ({reason}); change the section") from error
    for layer in adapted_layers(module).values():
        if not isinstance(layer.get_base_layer(), nn.Linear):
            raise UserError("model.adapter.targets: adapters go on linear layers; name those only")
        if config.peft_type == "LORA":
            _prepare_lora(layer, config)
    return module


def peft_config(spec: AdapterSpec, targets: Sequence[str]) -> Any:
    """PEFT's own configuration of the adapter."""
    from peft.mapping import PEFT_TYPE_TO_CONFIG_MAPPING

    name, preset = ALIASES.get(spec.name, (spec.name, {}))
    classes: dict[str, Any] = {
        str(kind.value).lower(): found for kind, found in PEFT_TYPE_TO_CONFIG_MAPPING.items()
    }
    if name not in PROVEN:
        reason = "does not train in stacks of clients" if name in classes else "is not known to PEFT"
        raise UserError(f"model.adapter.name = '{name}' {reason}; {nearest(name, {*PROVEN, *ALIASES})}")
    known = {field.name for field in dataclasses.fields(classes[name])} - SET_BY_US
    options = PROVEN[name] | preset | (spec.model_extra or {})
    for names, value, usual in ((("r", "rank"), spec.r, RANK), (("lora_alpha", "alpha"), spec.alpha, ALPHA)):
        place = next((each for each in names if each in known), None)
        if place is not None:
            options[place] = usual if value is None else value
        elif value is not None:
            raise UserError(f"model.adapter: the kind '{name}' has no {names[-1]}; leave the key out")
    if unknown := sorted(options.keys() - known):
        raise UserError(f"model.adapter: '{name}' has no key '{unknown[0]}'; {nearest(unknown[0], known)}")
    if dropout := next((key for key, value in options.items() if "dropout" in key and value), None):
        raise UserError(f"model.adapter.{dropout}: would not draw the same in a stack; leave it out")
    chosen = targets if spec.targets is None else spec.targets
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config = classes[name](**options, target_modules=chosen if isinstance(chosen, str) else list(chosen))
    if config.peft_type == "LORA":
        from methods.modules.lora_linear import LoraLinear

        config._register_custom_module({nn.Linear: LoraLinear})
    return config


def _prepare_lora(layer: Any, config: Any) -> None:
    """Draw A from the model's stream, where nothing else is asked for, and make room for a private branch."""
    if config.init_lora_weights is True:
        first = layer.lora_A[SHARED].weight
        first.data.copy_(first_factor(*first.shape))
    if not layer.lora_variant and not config.lora_bias:
        with torch.random.fork_rng(devices=[]):
            layer.update_layer(PRIVATE, config.r, lora_alpha=config.lora_alpha, config=config)
        for factor in (layer.lora_A[PRIVATE], layer.lora_B[PRIVATE]):
            factor.register_parameter("weight", None)
        layer.set_adapter(SHARED)
