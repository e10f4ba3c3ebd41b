"""What a check of a method comes to: rules, findings and the report of both."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

GUIDE = "CONTRIBUTING.md"


@dataclass(frozen=True)
class Finding:
    """One way in which a method breaks the contract."""

    rule: str
    sentence: str
    section: str
    """Of the guide, where one can read about it."""

    def __str__(self) -> str:
        return f"{self.sentence} (see {GUIDE}, '{self.section}')"


@dataclass(frozen=True)
class Verdict:
    """What one rule has to say about a method."""

    rule: str
    demand: str
    findings: tuple[Finding, ...] = ()
    not_applied: str = ""
    """Why the rule was not applied; empty if it was."""

    @property
    def mark(self) -> str:
        return "✗" if self.findings else "–" if self.not_applied else "✓"

    def __str__(self) -> str:
        if self.findings:
            return "\n".join(f"✗ {self.rule}: {finding}" for finding in self.findings)
        note = f" (not applied: {self.not_applied})" if self.not_applied else ""
        return f"{self.mark} {self.rule}: {self.demand}{note}"


@dataclass(frozen=True)
class Report:
    """The verdicts of all rules on one method."""

    method: str
    verdicts: tuple[Verdict, ...]
    model: str = ""
    """The small model on which the method was run; empty if it accepts none."""
    seconds: float = 0.0

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(finding for verdict in self.verdicts for finding in verdict.findings)

    @property
    def passed(self) -> bool:
        return not self.findings

    @property
    def summary(self) -> str:
        kept = sum(not verdict.findings and not verdict.not_applied for verdict in self.verdicts)
        skipped = sum(bool(verdict.not_applied) for verdict in self.verdicts)
        outcome = "passes the contract" if self.passed else "does not pass the contract"
        broken = len(self.verdicts) - kept - skipped
        counts = [
            f"{kept} {'rule' if kept == 1 else 'rules'} kept",
            f"{broken} broken" if broken else "",
            f"{skipped} not applied" if skipped else "",
        ]
        return f"{self.method} {outcome}: {', '.join(filter(None, counts))} in {self.seconds:.1f} s"

    def __str__(self) -> str:
        return "\n".join([*map(str, self.verdicts), self.summary])

    def _repr_html_(self) -> str:
        """For notebooks: the rules as a table."""
        rows = "".join(
            f"<tr><td>{verdict.mark}</td><td>{escape(verdict.rule)}</td>"
            f"<td style='text-align: left'>{'<br>'.join(escape(text) for text in _texts(verdict))}</td></tr>"
            for verdict in self.verdicts
        )
        return f"<p><b>{escape(self.summary)}</b></p><table>{rows}</table>"


def _texts(verdict: Verdict) -> list[str]:
    if verdict.findings:
        return [str(finding) for finding in verdict.findings]
    return [f"not applied: {verdict.not_applied}" if verdict.not_applied else verdict.demand]
