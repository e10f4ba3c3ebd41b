"""Files about a search: its history, scores over each hyperparameter, and Optuna's importances."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from bench.records.files import read_json, replacing, write_json
from bench.search.journal import Trial
from bench.search.optuna_study import OptunaStudy
from bench.search.plan import Search
from reports.figures.trials import SearchedKey, Trials, Tried, pictures

FEWEST = 4
"""With fewer finished trials, importances would be noise."""


def write_report(search: Search, trials: Sequence[Trial]) -> list[Path]:
    """Write the files, unless they are those of the same history."""
    names = ("importance.json", "history.png", "history.json")
    shares, figure, history = files = [search.directory / name for name in names]
    sensitivity = list(pictures(shown_trials(search, trials)))
    files += [file for picture in sensitivity for file in picture.files(search.directory)]
    lines = {"row": search.row, "trials": [_line(search, trial) for trial in trials]}
    if all(file.exists() for file in files) and read_json(history) == lines:
        return files
    found = importance(search, trials)
    write_json(shares, found)
    _draw(search, trials, found.get("importance") or {}, figure)
    for picture in sensitivity:
        picture.write(search.directory)
    write_json(history, lines)
    return files


def importance(search: Search, trials: Sequence[Trial]) -> dict[str, Any]:
    """Key → its share in the differences between finished trials, or why that is unknown."""
    finished = [
        trial
        for trial in trials
        if trial.outcome == "finished" and search.space.covers(search.space.default | trial.values)
    ]
    if not search.space.domains:
        return {"importance": None, "reason": "there was nothing to choose"}
    if len(finished) < FEWEST:
        return {"importance": None, "reason": f"{len(finished)} finished trials, of {FEWEST} needed"}
    if len({trial.validation for trial in finished}) == 1:
        return {"importance": None, "reason": "all trials have the same score"}
    import optuna

    shares = optuna.importance.get_param_importances(OptunaStudy(search.space).after(finished))
    return {
        "importance": {key: float(share) for key, share in shares.items()},
        "estimator": "PED-ANOVA",
        "finished_trials": len(finished),
    }


def _line(search: Search, trial: Trial) -> dict[str, Any]:
    line = {
        "trial": trial.number,
        "set": trial.values,
        "outcome": trial.outcome or "open",
        "validation": trial.validation,
        "rounds": trial.rounds,
        "by_round": {str(number): score for number, score in search.history(trial)},
    }
    return line | ({"reason": trial.reason} if trial.reason else {})


def shown_trials(search: Search, trials: Sequence[Trial]) -> Trials:
    """The data of the sensitivity figure."""
    default, domains = search.space.default, search.space.domains
    keys = [
        SearchedKey(key, domain.kind, default[key], domain.values if domain.kind == "choice" else ())
        for key, domain in domains.items()
    ]
    tried = [
        Tried(default | trial.values, 100 * trial.validation, is_default=trial.number == 0)
        for trial in trials
        if trial.outcome == "finished" and trial.validation is not None
    ]
    return Trials(search.row, keys, tried, left_out=len(trials) - len(tried))


def _draw(search: Search, trials: Sequence[Trial], importances: dict[str, float], file: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.2), dpi=120, layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(2, 1))
    for outcome, colour in (("finished", "tab:blue"), ("stopped", "tab:orange")):
        shown = [trial for trial in trials if trial.outcome == outcome and trial.validation is not None]
        scores = [100 * (trial.validation or 0.0) for trial in shown]
        left.scatter([trial.number for trial in shown], scores, color=colour, label=outcome)
    finished = [trial for trial in trials if trial.outcome == "finished"]
    best = list(accumulate((100 * (trial.validation or 0.0) for trial in finished), max))
    left.step([trial.number for trial in finished], best, where="post", color="tab:blue", label="best so far")
    left.set(xlabel="trial (0 is the default)", ylabel="validation accuracy in %", title=f"{search.row}")
    left.legend(frameon=False)
    keys = list(reversed(importances))
    right.barh(keys, [importances[key] for key in keys], color="tab:gray")
    right.set(xlabel="importance" if keys else "importance: too few trials")
    with replacing(file) as draft:
        FigureCanvasAgg(figure).print_png(draft)  # `savefig` would draw everything twice
