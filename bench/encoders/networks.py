"""Transformers of the library `transformers` as networks from tokens to one vector per text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

import torch
from torch import Tensor, nn

from bench.errors import UserError

Attention = Literal["eager", "sdpa"]
"""Names of the library: plain operations, which `vmap` supports, or PyTorch's fused ones."""
Pooling = Literal["mean", "first"]
NO_CODE: Final = {"local_files_only": True, "trust_remote_code": False}


def pretrained_network(folder: Path, attention: Attention = "sdpa") -> nn.Module:
    """The transformer with the weights in a folder, without what was put on top of its outputs.

    Nothing in the folder is executed and nothing is downloaded.
    """
    library = _library()
    with _reading(folder):
        network = library.AutoModel.from_pretrained(
            folder, attn_implementation=attention, use_safetensors=True, dtype=torch.float32, **NO_CODE
        )
    return _without_top(network)


def fresh_network(folder: Path, attention: Attention = "sdpa") -> nn.Module:
    """The transformer that the configuration in a folder describes, with weights newly drawn."""
    library = _library()
    with _reading(folder):
        config = library.AutoConfig.from_pretrained(folder, **NO_CODE)
        network = library.AutoModel.from_config(
            config, attn_implementation=attention, trust_remote_code=False
        )
    return _without_top(network)


def pooled_output(network: nn.Module, ids: Tensor, padding: int, pooling: Pooling = "mean") -> Tensor:
    """The network's last outputs, averaged over a text's real tokens or taken at its first one."""
    real = ids != padding
    # A mask of four dimensions is used as it is; one of two would be looked into, which `vmap` forbids.
    ignored = torch.zeros(real.shape, device=ids.device).masked_fill(~real, torch.finfo(torch.float32).min)
    outputs: Tensor = network(input_ids=ids, attention_mask=ignored[:, None, None]).last_hidden_state
    if pooling == "first":
        return outputs[:, 0]
    weights = real.to(outputs.dtype)[..., None]
    return (outputs * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)


@contextmanager
def _reading(folder: Path) -> Iterator[None]:
    """Turns errors of the library into a sentence, and keeps it from listing layers left out on purpose."""
    logging = _library().utils.logging
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    except (OSError, ValueError, RuntimeError) as error:
        reason = str(error).strip().partition("\n")[0].rstrip(".:")
        raise UserError(
            f"cannot load the language model in {folder}: {reason}; the folder must be one that "
            "save_pretrained of the library transformers has written"
        ) from error
    finally:
        logging.set_verbosity(verbosity)
        logging.enable_progress_bar()


def _library() -> Any:
    """Imported where it is needed alone: it takes seconds."""
    import transformers

    return transformers


def _without_top(network: Any) -> nn.Module:
    if any(getattr(module, "is_causal", False) for module in network.modules()):
        raise UserError(
            f"language model '{network.config.model_type}' reads forwards only; choose one that reads both "
            "ways, such as BERT, RoBERTa or MiniLM"
        )
    if hasattr(network, "pooler"):
        network.pooler = None
    found: nn.Module = network
    return found
