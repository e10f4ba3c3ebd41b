"""Optuna's part in a search: its suggestions stay the same from version to version."""

from __future__ import annotations

import inspect
from typing import Any

import optuna
import pytest

from bench.search.journal import Outcome, Trial
from bench.search.space import SearchSpace
from bench.search.suggest import suggest
from search_spaces.model import Distribution

SPACE = SearchSpace(
    "wide",
    {
        "mu": Distribution.model_validate({"log_uniform": [0.001, 1.0]}),
        "tau": Distribution.model_validate({"uniform": [0.0, 1.0]}),
        "k": Distribution.model_validate({"int": [1, 5]}),
        "kind": Distribution.model_validate({"choice": ["a", "b", "c"]}),
    },
    {"mu": 0.01, "tau": 0.5, "k": 2, "kind": "a"},
)
OUTCOMES: tuple[Outcome | None, ...] = ("finished", "stopped", "failed", "finished", None)
DEPRECATED = {
    "consider_prior",
    "prior_weight",
    "consider_magic_clip",
    "consider_endpoints",
    "gamma",
    "weights",
    "warn_independent_sampling",
    "constraints_func",
}
"""Options of TPE that warn when they are given."""


def suggestions(count: int) -> list[dict[str, Any]]:
    """Of a search whose trials end in all possible ways, or not at all; the best ones have tau near 0.3."""
    past: list[Trial] = []
    for number in range(count):
        values = suggest("optuna", SPACE, 0, number, past)
        assert values is not None
        outcome = OUTCOMES[number % len(OUTCOMES)]
        score = 1 / (1 + abs((SPACE.default | values)["tau"] - 0.3))
        measured = score if outcome in ("finished", "stopped") else None
        past.append(Trial(number, values, outcome, measured, rounds=0 if outcome is None else 4))
    return [trial.values for trial in past]


def test_the_suggestions_of_a_seed_do_not_change() -> None:
    """Pinned with Optuna 5.0."""
    assert suggestions(12) == [
        {},
        {"mu": 0.1768, "tau": 0.1602, "k": 2, "kind": "b"},
        {"mu": 0.02375, "tau": 0.3507, "k": 5, "kind": "b"},
        {"mu": 0.004362, "tau": 0.1083, "k": 5, "kind": "b"},
        {"mu": 0.04552, "tau": 0.1933, "k": 3, "kind": "a"},
        {"mu": 0.04316, "tau": 0.7286, "k": 2, "kind": "a"},
        {"mu": 0.003137, "tau": 0.3264, "k": 4, "kind": "a"},
        {"mu": 0.4136, "tau": 0.9298, "k": 4, "kind": "b"},
        {"mu": 0.001557, "tau": 0.7691, "k": 5, "kind": "b"},
        {"mu": 0.1651, "tau": 0.9636, "k": 5, "kind": "b"},
        {"mu": 0.8641, "tau": 0.1322, "k": 5, "kind": "b"},
        {"mu": 0.3809, "tau": 0.1782, "k": 5, "kind": "b"},
    ]


def test_every_option_of_tpe_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, Any]] = []
    tpe = optuna.samplers.TPESampler

    def recorded(**options: Any) -> optuna.samplers.TPESampler:
        if options:  # a new study makes a sampler without any, which is never asked
            given.append(options)
        return tpe(**options)

    monkeypatch.setattr(optuna.samplers, "TPESampler", recorded)
    suggestions(7)
    options = set(inspect.signature(tpe.__init__).parameters) - {"self"} - DEPRECATED
    assert given and all(set(each) == options for each in given)


@pytest.mark.parametrize("option", ["multivariate", "constant_liar"])
def test_what_optuna_4_did_by_default_gives_other_suggestions(
    monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    """So the suggestions above depend on the option."""
    expected, tpe = suggestions(12), optuna.samplers.TPESampler
    monkeypatch.setattr(optuna.samplers, "TPESampler", lambda **options: tpe(**options | {option: False}))
    assert suggestions(12) != expected
