"""Performance profiles over settings."""

from pathlib import Path

from reports.figures import write_pictures
from reports.figures.performance_profile import pictures
from reports.figures.style import house_style
from reports.numbers.profiles import profiles_of, steps
from reports.numbers.ranking import Blocks

SCORES = {"A": (80.0, 60.0, 70.0), "B": (79.5, 61.0, 65.0), "C": (80.0, 55.0, 69.0)}
BLOCKS = Blocks(
    ("x", "y", "z"), SCORES, {label: tuple((score,) for score in scores) for label, scores in SCORES.items()}
)


def test_a_profile_counts_the_settings_within_a_distance_of_the_best() -> None:
    profiles = profiles_of(BLOCKS)
    assert list(profiles) == ["A", "B", "C"]  # within one point in 3, 2 and 2 settings; B falls 5, C 6 behind
    assert profiles["A"].gaps == (0.0, 0.0, 1.0)
    assert [profiles["B"].share_within(points) for points in (0, 0.5, 4.9, 5)] == [1 / 3, 2 / 3, 2 / 3, 1]
    assert steps(profiles["C"]) == {0.0: 1 / 3, 1.0: 2 / 3, 6.0: 1.0}


def test_the_figure_has_a_line_per_method_that_ends_at_one(tmp_path: Path) -> None:
    (picture,) = pictures(profiles_of(BLOCKS))
    with house_style():
        (panel,) = picture.draw().axes
    lines = {str(line.get_label()): list(line.get_ydata()) for line in panel.get_lines()}  # type: ignore[arg-type]
    assert set(lines) == set(SCORES) and all(line[-1] == 1.0 for line in lines.values())
    assert [file.name for file in write_pictures([picture], tmp_path)] == [
        "performance_profile.png",
        "performance_profile.pdf",
    ]
