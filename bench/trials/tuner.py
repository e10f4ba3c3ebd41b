"""One call of Ray Tune, as runs and searches make it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ray import tune

from bench.cluster.failures import survived
from bench.cluster.liveness import watched
from bench.cluster.resources import Resources
from bench.errors import mendable
from bench.trials.trainable import CellTrainable, ReportWriter


class _Forgetful(tune.Callback):
    """Lets go of the statistics that Tune keeps of every trial, some 30 kB, once it has ended."""

    def on_trial_complete(self, iteration: int, trials: Any, trial: Any, **_: Any) -> None:
        _forget_statistics(trial)

    def on_trial_error(self, iteration: int, trials: Any, trial: Any, **_: Any) -> None:
        _forget_statistics(trial)


def _forget_statistics(trial: Any) -> None:
    trial.metric_analysis.clear()
    trial.metric_n_steps.clear()
    trial.run_metadata.invalidate_cache()


def fit(
    kind: type[CellTrainable],
    resources: Resources,
    scratch: Path,
    retries: int,
    tuning: Mapping[str, Any],
    param_space: Mapping[str, Any] | None = None,
    callbacks: Sequence[tune.Callback] = (),
) -> None:
    """Run trials of this kind to their ends; all that they leave behind is then where it belongs.

    Tune's own notes go to the scratch folder, and nothing is ever read from them.
    """
    writer = ReportWriter()
    tuner = tune.Tuner(
        tune.with_resources(kind, resources.request()),
        param_space=dict(param_space or {}),
        tune_config=tune.TuneConfig(
            reuse_actors=True,
            trial_dirname_creator=lambda trial: trial.trial_id,
            **tuning,
        ),
        run_config=tune.RunConfig(
            name="trials",
            storage_path=str(scratch),
            verbose=0,
            failure_config=tune.FailureConfig(max_failures=retries),
            checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
            stop=writer,
            callbacks=[*callbacks, _Forgetful()],
        ),
    )
    with watched(), survived():
        try:
            tuner.fit()
        except Exception as error:
            if problem := writer.problem or mendable(error, scratch.parent):
                raise problem from None
            raise
