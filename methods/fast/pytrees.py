"""Nested containers of tensors, as `torch.func.vmap` sees them; torch has no public module for them."""

from torch.utils._pytree import register_pytree_node, tree_map

__all__ = ["register_pytree_node", "tree_map"]
