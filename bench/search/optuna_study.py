"""The journal of a search as a study in Optuna's sense."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from bench.search.journal import Trial
from bench.search.space import SearchSpace, Values, rounded
from search_spaces.model import Distribution

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution


class OptunaStudy:
    """Grows with the journal, since making a new one takes longer than a suggestion."""

    def __init__(self, space: SearchSpace) -> None:
        self._space = space
        self._study: optuna.Study | None = None
        self._past: list[Trial] = []
        """The trials in the study."""

    def after(self, past: Sequence[Trial]) -> optuna.Study:
        """The study of these trials, without those outside the space, as the default may be."""
        import optuna

        if self._study is None or list(past[: len(self._past)]) != self._past:
            optuna.logging.set_verbosity(optuna.logging.WARNING)
            self._study, self._past = optuna.create_study(direction="maximize"), []
        for trial in past[len(self._past) :]:
            if self._space.covers(self._space.default | trial.values):
                self._study.add_trial(self._frozen(trial))
            self._past.append(trial)
        return self._study

    def ask(self, past: Sequence[Trial], sampler: optuna.samplers.BaseSampler) -> Values:
        """What the sampler suggests after these trials. It enters the study when it is in the journal."""
        from optuna.trial import TrialState

        study = self.after(past)
        study.sampler = sampler
        asked = study.ask(fixed_distributions=self._distributions)
        study.tell(asked, state=TrialState.FAIL)  # no sampler looks at those
        params = asked.params
        return {key: _decoded(domain, params[key]) for key, domain in self._space.domains.items()}

    def _frozen(self, trial: Trial) -> optuna.trial.FrozenTrial:
        import optuna
        from optuna.trial import TrialState

        states = {
            "finished": TrialState.COMPLETE,
            "stopped": TrialState.PRUNED,
            "failed": TrialState.FAIL,
            None: TrialState.RUNNING,
        }
        values = self._space.default | trial.values
        return optuna.trial.create_trial(
            state=states[trial.outcome],
            value=trial.validation if trial.outcome == "finished" else None,
            params={key: _encoded(domain, values[key]) for key, domain in self._space.domains.items()},
            distributions=self._distributions,
            intermediate_values={} if trial.validation is None else {trial.rounds: trial.validation},
        )

    @cached_property
    def _distributions(self) -> dict[str, BaseDistribution]:
        return {key: _distribution(domain) for key, domain in self._space.domains.items()}


def _distribution(domain: Distribution) -> BaseDistribution:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if domain.kind == "choice":
        return CategoricalDistribution(range(len(domain.values)))
    low, high = domain.values
    if domain.kind == "int":
        return IntDistribution(low, high)
    return FloatDistribution(low, high, log=domain.kind == "log_uniform")


def _encoded(domain: Distribution, value: Any) -> Any:
    """Choices by their index, since Optuna accepts no lists and confuses True with 1."""
    return domain.values.index(value) if domain.kind == "choice" else value


def _decoded(domain: Distribution, value: Any) -> Any:
    if domain.kind == "choice":
        return domain.values[value]
    return value if domain.kind == "int" else rounded(value, domain)
