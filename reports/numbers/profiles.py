"""Performance profiles over suites: how often a method is within a number of points of the best one.

Dolan and Moré, "Benchmarking optimization software with performance profiles", 2002, with differences of
accuracy in place of ratios of time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reports.numbers.ranking import Blocks


@dataclass(frozen=True)
class Profile:
    """A method's distances from the best method of each setting, in points, ascending."""

    gaps: tuple[float, ...]

    def share_within(self, points: float) -> float:
        """The share of settings in which the method is at most this far behind the best."""
        return sum(gap <= points for gap in self.gaps) / len(self.gaps)


def profiles_of(blocks: Blocks) -> dict[str, Profile]:
    """Method → its profile, by the share of settings within one point, then by the largest gap."""
    best = [max(scores) for scores in zip(*blocks.scores.values(), strict=True)]
    profiles = {label: _profile(scores, best) for label, scores in blocks.scores.items()}
    return dict(sorted(profiles.items(), key=lambda item: (-item[1].share_within(1.0), item[1].gaps[-1])))


def _profile(scores: Sequence[float], best: Sequence[float]) -> Profile:
    return Profile(tuple(sorted(top - score for score, top in zip(scores, best, strict=True))))


def steps(profile: Profile) -> Mapping[float, float]:
    """Points behind the best → share of settings, where the share changes."""
    return {gap: profile.share_within(gap) for gap in profile.gaps}
