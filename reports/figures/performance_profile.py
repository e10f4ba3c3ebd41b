"""Performance profiles: the share of settings in which a method is within some points of the best one."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from reports.figures.panels import legend, panels
from reports.figures.picture import Picture
from reports.figures.style import look
from reports.numbers.profiles import Profile, steps

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def pictures(profiles: Mapping[str, Profile]) -> Iterator[Picture]:
    if len(profiles) > 1:
        yield Picture("performance_profile", lambda: _draw(profiles))


def _draw(profiles: Mapping[str, Profile]) -> "Figure":
    figure, (panel,) = panels([""], size=(4.6, 3.2), margin=2.0)
    end = 1.05 * max(profile.gaps[-1] for profile in profiles.values()) or 1.0
    for place, (label, profile) in enumerate(profiles.items()):
        found = steps(profile)
        x, y = [0.0, *found, end], [profile.share_within(0.0), *found.values(), 1.0]
        style = look(place)
        panel.step(x, y, where="post", label=label, color=style["color"], linestyle=style["linestyle"])
    panel.set(
        xlabel="Points behind the best method", ylabel="Share of settings", xlim=(0, end), ylim=(0, 1.02)
    )
    legend(figure, [panel])
    return figure
