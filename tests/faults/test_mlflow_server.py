"""An MLflow server that is down, slow, refuses or talks nonsense costs the view of a run, not the run."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from bench.tracking.background import GIVE_UP, Background
from bench.tracking.tracker import Tracker
from tests.kit.cli import files_below
from tests.kit.fault_report import FaultReport
from tests.kit.tracking import Store

pytestmark = [pytest.mark.faults, pytest.mark.xdist_group("mlflow")]

SECTION = "MLflow server"
CELLS = 6


class Bad(BaseHTTPRequestHandler):
    """Answers every request in the way that its server has."""

    server: BadServer

    def do_GET(self) -> None:
        self.server.requests += 1
        if self.server.way == "slow":
            self.server.over.wait(60)
        if self.server.way in ("slow", "cut off"):
            self.close_connection = True
            return
        self.send_response({"refuses": 403, "broken": 500}.get(self.server.way, 200))
        self.end_headers()
        self.wfile.write(b"<html>not what you asked for")

    do_POST = do_GET  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class BadServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, way: str) -> None:
        super().__init__(("127.0.0.1", 0), Bad)
        self.way, self.requests, self.over = way, 0, threading.Event()


@contextmanager
def bad_server(way: str) -> Iterator[tuple[str, BadServer | None]]:
    """Its address, and the server unless it is down."""
    if way == "down":
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            yield f"http://127.0.0.1:{taken.getsockname()[1]}", None
        return
    server = BadServer(way)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", server
    finally:
        server.over.set()
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("way", ["down", "slow", "refuses", "broken", "cut off", "talks nonsense"])
def test_a_bad_server(
    way: str, mlflow_store: Store, monkeypatch: pytest.MonkeyPatch, report: FaultReport
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
    name = way.replace(" ", "-")
    cells = [mlflow_store.cell(name, f"{number}") for number in range(CELLS)]
    before = [files_below(cell.path) for cell in cells]
    said: list[str] = []
    with bad_server(way) as (address, server):
        tracker = Tracker(address, mlflow_store.out)
        with Background(said.append, "cells") as background:
            for cell in cells:
                background.submit(tracker.log_cell, mlflow_store.out, cell.planned)
        requests = server.requests if server else 0
    (sentence,) = said
    assert sentence.startswith(f"warning: {CELLS} cells are not in MLflow: MLflow at {address} did not take")
    assert "Traceback" not in sentence and "\n" not in sentence
    assert requests <= 4 * GIVE_UP, "it went on asking a server that does not work"
    assert [files_below(cell.path) for cell in cells] == before
    later = mlflow_store.tracker
    assert len(mlflow_store.pending(*cells, tracker=later)) == CELLS
    for cell in cells:
        later.log_cell(mlflow_store.out, cell.planned)
    assert len(mlflow_store.runs(name)) == CELLS
    report.add(SECTION, way, 1, f"one warning for {CELLS} cells; the next command logged them all")
