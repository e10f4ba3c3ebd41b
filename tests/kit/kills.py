"""A command whose processes are killed at random moments, and which is given again until it is done."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.kit.cli import kill_session, session_members, start_bench, wait_until
from tests.kit.standings import Standing, computed_again
from tests.kit.tune import Package
from tests.kit.two_nodes import TwoNodes

PATIENCE = 600
"""Seconds; the machine may be busy with other things."""
PAUSE = 0.1
"""Seconds between two looks, which cost time that the processes looked at could use."""
HOLD = 8.0
"""Seconds per round until a new node takes part.

Where a trial takes less time than a process needs to start, Ray Tune gives each to a process that is free,
and takes back the one that it was about to start on the new node.
"""
ENDING = 90
"""Seconds in which all processes of a command must have ended after its driver."""
PROGRAMS = {"trial": "ray::ResourceTrainable", "host": "ray::HostActor", "raylet": "raylet"}
"""Kind of process → how its program's name begins."""


@dataclass
class Campaign:
    """Kills what it is told to in a random order."""

    package: Package
    command: Sequence[object]
    run: Path
    """The folder in which the cells are."""
    random: random.Random
    nodes: TwoNodes | None = None
    """The cluster that the command joins, if it does."""
    killed: Counter[str] = field(default_factory=Counter)
    commands: int = 0
    sentences: Counter[str] = field(default_factory=Counter)
    """What commands said when they ended early."""
    _standings: list[Standing] = field(default_factory=list)
    _process: subprocess.Popen[str] | None = None
    _pace: float = 0.0

    def kill(self, kinds: Sequence[str], pace: float) -> None:
        """One process of each of these kinds, one after the other, while a round takes `pace` seconds."""
        self.package.take(pace)
        self._pace = pace
        order = list(kinds)
        self.random.shuffle(order)
        try:
            for kind in order:
                self._kill(kind)
        finally:
            if self._process is not None and self._process.poll() is not None:
                self._note_end()

    def finish(self) -> None:
        """The command again and again, without further kills, until all is done."""
        self.package.take(0)
        for _ in range(4):
            process = self._running()
            process.wait(timeout=PATIENCE)
            if self._note_end() == 0:
                return
        raise AssertionError(f"not done after {self.commands} commands: {self.sentences}")

    def check(self) -> None:
        """Nothing was computed twice, and nothing is left behind; before anybody else uses the package."""
        assert computed_again(self.package.rounds, self._standings) == []
        assert self.left_behind() == []

    def close(self) -> None:
        if self._process is not None:
            kill_session(self._process)

    def left_behind(self) -> list[str]:
        """Files that belong to no record."""
        names = (".draft", ".tune-", ".taken-", "checkpoint", "bench-cells-")
        return [str(path) for path in self.run.rglob("*") if any(name in path.name for name in names)]

    def _kill(self, kind: str) -> None:
        while True:
            process = self._running()
            if kind == "node":
                self._wait_for_second(process)
            if not self._come_to_a_random_moment(process):
                continue
            if kind == "node":
                self._lose_second()
                return
            victim = self._victim(kind, process)
            if victim is None:
                continue
            self._standings.append(Standing.now(self.run))
            try:
                os.kill(victim, signal.SIGKILL)
            except ProcessLookupError:
                continue
            self.killed[kind] += 1
            if kind == "driver" or (kind == "raylet" and self._ends_without(victim, process)):
                process.wait(PATIENCE)
                self._note_end(killed=kind == "driver")
            return

    def _ends_without(self, raylet: int, process: subprocess.Popen[str]) -> bool:
        """Whether a command ends, rather than wait for a dead Ray for ever; if not, it starts Ray anew."""

        def starts_anew() -> bool:
            return any(other != raylet for other in members(process.pid, PROGRAMS["raylet"]))

        assert wait_until(lambda: process.poll() is not None or starts_anew(), PATIENCE, PAUSE)
        return process.poll() is not None

    def _come_to_a_random_moment(self, process: subprocess.Popen[str]) -> bool:
        """A few rounds from now; False if the command ended before."""
        seen, more = len(self.package.rounds), self.random.randrange(4)
        wait_until(
            lambda: len(self.package.rounds) >= seen + more or process.poll() is not None, PATIENCE, PAUSE
        )
        time.sleep(self.random.uniform(0, 0.3))
        return process.poll() is None

    def _wait_for_second(self, process: subprocess.Popen[str]) -> None:
        """Until the second node has taken part, or the command has ended."""
        nodes = self.nodes
        assert nodes is not None

        def takes_part() -> bool:
            return any(line["node"] == nodes.second_id for line in self.package.rounds)

        self.package.take(HOLD)
        wait_until(lambda: takes_part() or process.poll() is not None, PATIENCE, PAUSE)
        self.package.take(self._pace)

    def _lose_second(self) -> None:
        assert self.nodes is not None
        self._standings.append(Standing.now(self.run))
        self.nodes.replace_second()
        self.killed["node"] += 1

    def _victim(self, kind: str, process: subprocess.Popen[str]) -> int | None:
        """A process of this kind; None if the command ended before there was one."""
        if kind == "driver":
            return process.pid
        found: list[int] = []

        def look() -> bool:
            found[:] = members(process.pid, PROGRAMS[kind])
            return bool(found) or process.poll() is not None

        wait_until(look, PATIENCE, PAUSE)
        return self.random.choice(found) if found else None

    def _running(self) -> subprocess.Popen[str]:
        if self._process is not None and self._process.poll() is not None:
            code = self._note_end()
            assert code != 0, "all is done before all kills were"
        if self._process is None:
            self._process = start_bench(*self.command, PYTHONPATH=self.package.path)
            self.commands += 1
        return self._process

    def _note_end(self, killed: bool = False) -> int:
        """How the command ended, and what it said if it did so early."""
        process = self._process
        assert process is not None
        leader = process.pid
        gone = wait_until(lambda: not session_members(leader), ENDING, PAUSE)
        left = [" ".join(_command_line(pid))[:80] for pid in session_members(leader)]
        kill_session(process)
        out, err = process.communicate()
        self._process = None
        assert gone, f"still there {ENDING} s after the driver: {left}"
        for text in (out, err):
            assert "Traceback" not in text, text
        if not killed and process.returncode not in (0, 1):
            assert err.startswith("error: ") and err.count("\n") == 1, (out, err)
            self.sentences[err.strip()] += 1
        elif not killed:
            assert err == "", err
            if process.returncode == 1:
                self.sentences[out.strip().splitlines()[-1]] += 1
        return process.returncode


def members(leader: int, program: str) -> list[int]:
    """The processes of a session whose program's name begins so."""
    return [
        pid
        for pid in session_members(leader)
        if (line := _command_line(pid)) and Path(line[0]).name.startswith(program)
    ]


def _command_line(pid: int) -> list[str]:
    with contextlib.suppress(psutil.Error):
        return list(psutil.Process(pid).cmdline())
    return []


@contextlib.contextmanager
def closing(campaign: Campaign) -> Iterator[Campaign]:
    try:
        yield campaign
    finally:
        campaign.close()
