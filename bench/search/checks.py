"""Mistakes found before a search starts: missing data, and values that its method does not take."""

from __future__ import annotations

from collections.abc import Callable

from bench.engine.assembly import check_method
from bench.engine.devices import device_here
from bench.engine.setting_checks import CheckedSetting, check_precisions, check_setting
from bench.search.journal import Trial
from bench.search.plan import Search
from bench.search.request import TuneRequest


def check_search(
    search: Search, request: TuneRequest, say: Callable[[str], None], extract: bool = True
) -> list[CheckedSetting]:
    """Every value is shown to the method before anything starts; returns the default under every setting.

    Without `extract`, features that are not cached are not computed.
    """
    default = search.cells({})
    if request.address is None:  # what the nodes of a cluster have is known once it is joined
        check_precisions((cell.config for cell in default), device_here(request.gpus_per_trial))
    settings = {
        cell.variant: check_setting(cell.config, request.data_root, say, extract)
        for cell in default
        if cell.seed == 0
    }
    points = list(search.space.corners())
    if search.algorithm == "grid":
        past: list[Trial] = []
        for number in range(request.trials):
            values = search.suggestion(number, past)
            if values is None:
                break
            past.append(Trial(number, values))
        points += [trial.values for trial in past]
    for values in points:
        for cell in search.cells(values):
            if cell.seed == 0:
                check_method(cell.config, settings[cell.variant].task)
    return list(settings.values())
