"""A page per method in Markdown, from its source, its search space and its results."""

from reports.docs.facts import Described, Examination, Traffic
from reports.docs.write import pages, write_docs

__all__ = ["Described", "Examination", "Traffic", "pages", "write_docs"]
