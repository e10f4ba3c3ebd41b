"""A few long-lived Ray actors, each the host of many clients.

Every round each actor gets one message with the work of all its clients and gives one back. Replies arrive
whole and are put in the order of the clients, so that the aggregation adds up the same numbers in the same
order as in a single process.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import GetTimeoutError
from ray.util.placement_group import get_current_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from bench.config.cell import CellConfig
from bench.engine.assembly import assemble_under
from bench.engine.clients.loop import LoopHost
from bench.engine.conditions import Conditions
from bench.engine.devices import use_precision
from bench.engine.evaluation import Scores
from methods.base import Message, Reply, State

READY_SECONDS = float(os.environ.get("BENCH_HOST_TIMEOUT", "120"))


@ray.remote
class HostActor:
    """A loop host in a process of its own; it builds its clients' data itself and never sends it."""

    def __init__(self, name: str, clients: list[int], config: CellConfig, conditions: Conditions) -> None:
        conditions.take_effect()
        assembled = assemble_under(conditions, config, clients)
        use_precision(config.training.precision, assembled.problem.task.device)
        self._host = LoopHost(assembled.problem, name)

    def ready(self) -> bool:
        return True

    def run(self, phase: int, number: int, messages: list[tuple[int, Message]]) -> list[Reply]:
        return list(self._host.run(phase, number, messages))

    def score(self, server: State, clients: list[int]) -> list[Scores]:
        return self._host.score(server, clients)

    def observe(self, server: State, clients: list[int]) -> list[Mapping[str, float]]:
        return self._host.observe(server, clients)

    def save(self) -> dict[str, bytes]:
        """The files of its clients' private states; it may not see the disk that they are for."""
        with tempfile.TemporaryDirectory() as place:
            self._host.save(Path(place))
            return {file.name: file.read_bytes() for file in Path(place).iterdir()}

    def load(self, files: Mapping[str, bytes]) -> None:
        with tempfile.TemporaryDirectory() as place:
            for name, content in files.items():
                (Path(place) / name).write_bytes(content)
            self._host.load(Path(place))


class RayHosts:
    """The actors behind the face of one host."""

    executor = "ray"

    def __init__(self, clients: Sequence[int], config: CellConfig, conditions: Conditions) -> None:
        count = min(conditions.hosts, len(clients))
        self._home = {client: position % count for position, client in enumerate(clients)}
        self._actors = [
            _place(bundle, conditions).remote(
                str(bundle), [c for c, home in self._home.items() if home == bundle], config, conditions
            )
            for bundle in range(count)
        ]
        try:
            ray.get([actor.ready.remote() for actor in self._actors], timeout=READY_SECONDS)
        except GetTimeoutError:
            self.close()
            raise RuntimeError(
                f"the {count} hosts of this cell were not up after {READY_SECONDS:g} s: the nodes are too "
                f"busy, or have no room for {conditions.cpus:g} CPU and {conditions.gpus:g} GPU each; use "
                "fewer --hosts or smaller shares"
            ) from None

    def run(self, phase: int, number: int, messages: Sequence[tuple[int, Message]]) -> list[Reply]:
        by_home: dict[int, list[tuple[int, Message]]] = {}
        for client, message in messages:
            by_home.setdefault(self._home[client], []).append((client, message))
        pending = [self._actors[home].run.remote(phase, number, part) for home, part in by_home.items()]
        replies = {reply.client: reply for part in ray.get(pending) for reply in part}
        return [replies[client] for client, _ in messages]

    def score(self, server: State, clients: Sequence[int]) -> list[Scores]:
        return self._ask("score", server, clients)

    def observe(self, server: State, clients: Sequence[int]) -> list[Mapping[str, float]]:
        return self._ask("observe", server, clients)

    def _ask(self, question: str, server: State, clients: Sequence[int]) -> list[Any]:
        """Every client's answer to a question about the server's state, in the order of the clients."""
        by_home: dict[int, list[int]] = {}
        for client in clients:
            by_home.setdefault(self._home[client], []).append(client)
        state = ray.put(server)
        pending = [
            getattr(self._actors[home], question).remote(state, part) for home, part in by_home.items()
        ]
        answers: dict[int, Any] = {}
        for part, values in zip(by_home.values(), ray.get(pending), strict=True):
            answers.update(zip(part, values, strict=True))
        return [answers[client] for client in clients]

    def save(self, folder: Path) -> None:
        for files in ray.get([actor.save.remote() for actor in self._actors]):
            for name, content in files.items():
                (folder / name).write_bytes(content)

    def load(self, folder: Path) -> None:
        files = ray.put({file.name: file.read_bytes() for file in folder.iterdir()})
        ray.get([actor.load.remote(files) for actor in self._actors])

    def close(self) -> None:
        for actor in self._actors:
            ray.kill(actor)


def _place(bundle: int, conditions: Conditions) -> Any:
    """An actor class with the resources of a host, inside the trial's placement group if there is one."""
    options: dict[str, Any] = {"num_cpus": conditions.cpus, "num_gpus": conditions.gpus}
    group = get_current_placement_group()
    if group is not None:
        options["scheduling_strategy"] = PlacementGroupSchedulingStrategy(
            placement_group=group, placement_group_bundle_index=bundle + 1
        )
    return HostActor.options(**options)  # type: ignore[attr-defined]
