"""A rule of the contract."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bench.contract.method_under_test import MethodUnderTest, NotApplicableError, raised
from bench.contract.report import Finding, Verdict


@dataclass(frozen=True)
class Rule:
    """A demand on every method, and how to find out whether it is met."""

    name: str
    demand: str
    """A plain sentence."""
    section: str
    """Of the guide, where one can read about it."""
    examine: Callable[[MethodUnderTest], Iterable[str]]
    """Yields one sentence for every way in which the method breaks the rule."""
    runs_it: bool = True
    """Whether the method has to run for this."""

    def applied_to(self, subject: MethodUnderTest) -> Verdict:
        """What the rule finds; an error of the method's code is a finding too."""
        try:
            sentences = list(self.examine(subject))
        except NotApplicableError as reason:
            return Verdict(self.name, self.demand, not_applied=str(reason))
        except Exception as error:
            sentences = [f"it raises {raised(subject, error)}"]
        findings = tuple(Finding(self.name, sentence, self.section) for sentence in sentences)
        return Verdict(self.name, self.demand, findings)
