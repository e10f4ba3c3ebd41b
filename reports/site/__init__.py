"""A static site of all results: ranks, a page per suite, per method and per paper; works from a folder."""

from reports.site.facts import Hyperparameter, MethodInfo
from reports.site.write import write_site

__all__ = ["Hyperparameter", "MethodInfo", "write_site"]
