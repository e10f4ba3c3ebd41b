"""GGEUR: `method.py` is the method, with its equations; the other files are parts of it."""

from methods.wrappers.ggeur.method import GGEUR

__all__ = ["GGEUR"]
