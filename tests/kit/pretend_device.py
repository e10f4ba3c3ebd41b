"""A device that only pretends: tensors say that they are elsewhere, their values stay on the CPU.

Everything that is done to such tensors is counted as it would be on a GPU: kernels, moments at which the host
waits for the device or the device for the host, and operations that a GPU would refuse since one operand is
on the CPU. The device's type is one that PyTorch knows but no build of it has ("lazy").

What counts: every operation that computes is one kernel, and so is an operation on a list of tensors
(`torch._foreach_…`), which CUDA runs in one launch or a few. Views and allocations are none. A copy between
host and device is a synchronisation in both directions, unless it is asked for as not blocking: memory for
those is pinned where there is a GPU.
"""

from __future__ import annotations

import traceback
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

DEVICE = torch.device("lazy", 0)
CPU = torch.device("cpu")

_VIEWS = frozenset(
    [
        "_reshape_alias",
        "_unsafe_view",
        "alias",
        "as_strided",
        "detach",
        "diagonal",
        "expand",
        "lift_fresh",
        "permute",
        "select",
        "slice",
        "split",
        "split_with_sizes",
        "squeeze",
        "t",
        "transpose",
        "unbind",
        "unfold",
        "unsqueeze",
        "view",
        "view_as_real",
    ]
)
_ALLOCATIONS = frozenset(["empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"])
_ANSWERS = frozenset(["_local_scalar_dense", "equal", "is_nonzero", "item"])
"""Operations whose result is a number on the host."""
_SHAPED_BY_VALUES = frozenset(
    ["_unique2", "bincount", "masked_select", "nonzero", "unique_dim", "unique_consecutive"]
)
"""Operations whose result has a shape that the host must wait for."""
_DECOMPOSITIONS = frozenset(["_linalg_eigh", "_linalg_svd", "linalg_cholesky_ex", "linalg_lu_factor_ex"])
"""On CUDA they check on the host whether they have worked."""
_INDEXING = frozenset(["_index_put_impl_", "index", "index_put", "index_put_"])


@dataclass
class Counts:
    """What has been done on the pretended device since the last reset; keys say where in the project."""

    kernels: Counter[str] = field(default_factory=Counter)
    """Operation → how often."""
    waits: Counter[str] = field(default_factory=Counter)
    mixed: Counter[str] = field(default_factory=Counter)

    def reset(self) -> None:
        for counter in (self.kernels, self.waits, self.mixed):
            counter.clear()


class Elsewhere(Tensor):
    """A tensor that says it is on the pretended device."""

    content: Tensor
    counts: Counts

    @staticmethod
    def __new__(cls, values: Tensor, counts: Counts) -> Elsewhere:
        made = Tensor._make_wrapper_subclass(
            cls,
            values.size(),
            strides=values.stride(),
            storage_offset=values.storage_offset(),
            dtype=values.dtype,
            device=DEVICE,
        )
        made.content, made.counts = values, counts
        return made

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"Elsewhere({self.content})"

    def tolist(self) -> Any:
        """A copy to the host; PyTorch would read the memory behind its own operations' back."""
        self.counts.waits[f"tolist at {_place()}"] += 1
        return self.content.tolist()

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        counts = next(each.counts for each in tree_leaves((args, kwargs)) if isinstance(each, Elsewhere))
        return _run(counts, func, args, kwargs or {})


class PretendDevice(TorchDispatchMode):
    """While it is active, tensors can be put on `DEVICE`, and `counts` says what happens there."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.counts = Counts()

    def __enter__(self) -> PretendDevice:
        # Numbers in calls such as torch.tensor(3, device=…) begin on the CPU.
        self._lifted_before = torch._C._only_lift_cpu_tensors()
        torch._C._set_only_lift_cpu_tensors(True)
        self._swapped_before = torch.__future__.get_overwrite_module_params_on_conversion()
        torch.__future__.set_overwrite_module_params_on_conversion(True)
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        torch.__future__.set_overwrite_module_params_on_conversion(self._swapped_before)
        torch._C._set_only_lift_cpu_tensors(self._lifted_before)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(self.counts, func, args, kwargs or {})


def _run(counts: Counts, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """The operation on the values, counted; results are elsewhere if the operands or the caller say so."""
    name = func._schema.name.removeprefix("aten::")
    operands = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
    there = [each for each in operands if isinstance(each, Elsewhere)]
    here = [each for each in operands if not isinstance(each, Elsewhere)]
    target = kwargs.get("device")
    lands_there = bool(there) if target is None else torch.device(target).type == DEVICE.type
    if name == "copy_":
        lands_there = isinstance(args[0], Elsewhere)
    _count(counts, name, args, kwargs, bool(there), here, lands_there)
    if target is not None:
        kwargs = {**kwargs, "device": CPU}
    values = tree_map(lambda each: each.content if isinstance(each, Elsewhere) else each, (args, kwargs))
    result = func(*values[0], **values[1])
    if name.endswith("_") and not name.startswith("__") and args and isinstance(args[0], Tensor):
        return args[0]
    if name in _ANSWERS or not lands_there:
        return result
    return tree_map(lambda each: Elsewhere(each, counts) if type(each) is Tensor else each, result)


def _count(
    counts: Counts, name: str, args: Any, kwargs: dict[str, Any], there: bool, here: list[Tensor], lands: bool
) -> None:
    copies = name in ("_to_copy", "copy_")
    if copies:
        source = args[1] if name == "copy_" else args[0]
        comes_from_there = isinstance(source, Elsewhere)
        in_background = bool(kwargs.get("non_blocking") or (name == "copy_" and len(args) > 2 and args[2]))
        if comes_from_there and not lands:
            counts.waits[f"copy to the host at {_place()}"] += 1
        elif lands and not comes_from_there and not in_background:
            counts.waits[f"copy to the device at {_place()}"] += 1
        elif comes_from_there and lands:
            counts.kernels[name] += 1
        return
    if there and name in _ANSWERS | _SHAPED_BY_VALUES | _DECOMPOSITIONS:
        counts.waits[f"{name} at {_place()}"] += 1
    elif there and name in _INDEXING and any(_is_mask(at) for at in args[1]):
        counts.waits[f"{name} by a mask at {_place()}"] += 1
    if there and any(each.dim() > 0 for each in here):
        counts.mixed[f"{name} at {_place()}"] += 1
    if lands and isinstance(kwargs.get("generator"), torch.Generator):
        counts.mixed[f"{name} with a generator of the CPU at {_place()}"] += 1
    if lands and name not in _VIEWS | _ALLOCATIONS | _ANSWERS:
        counts.kernels[name] += 1


def _is_mask(at: Any) -> bool:
    return isinstance(at, Tensor) and at.dtype in (torch.bool, torch.uint8)


def _place() -> str:
    """The innermost line of the project's own code."""
    for frame in reversed(traceback.extract_stack()):
        name = frame.filename.replace("\\", "/")
        if (
            "site-packages" not in name
            and ("/methods/" in name or "/bench/" in name)
            and "/tests/" not in name
        ):
            return f"{name.rsplit('/', 1)[-1]}:{frame.lineno}"
    return "?"
