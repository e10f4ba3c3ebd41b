"""How many trials fit: a trial, or a host of it, must fit on one node; a share of a GPU on one card."""

from __future__ import annotations

import pytest

from bench.cluster.resources import Resources, nodes_in_words

SMALL = {"CPU": 1.0}
LARGE = {"CPU": 4.0}
CARDS = {"CPU": 8.0, "GPU": 2.0}


@pytest.mark.parametrize(
    ("resources", "nodes", "expected"),
    [
        (Resources(), [SMALL, SMALL], [1, 1]),
        (Resources(cpus=2), [SMALL, SMALL], [0, 0]),
        (Resources(cpus=2), [SMALL, LARGE], [0, 2]),
        (Resources(cpus=0.5), [SMALL, SMALL], [2, 2]),
        (Resources(cpus=0.1), [SMALL], [10]),
        (Resources(gpus=1), [SMALL, CARDS], [0, 2]),
        (Resources(gpus=2), [{"CPU": 8.0, "GPU": 1.0}] * 2, [0, 0]),
        (Resources(gpus=0.6), [CARDS], [2]),
        (Resources(gpus=0.5, cpus=3), [CARDS], [2]),
        (Resources(hosts=1), [SMALL, SMALL], [1, 0]),
        (Resources(hosts=2), [SMALL, SMALL], [0, 0]),
        (Resources(hosts=2), [LARGE, SMALL, SMALL], [2, 0, 0]),
        (Resources(hosts=1, cpus=2), [SMALL, SMALL, SMALL], [0, 0, 0]),
        (Resources(hosts=1, gpus=1), [SMALL, CARDS], [0, 2]),
    ],
)
def test_trials_per_node(resources: Resources, nodes: list[dict[str, float]], expected: list[int]) -> None:
    assert resources.per_node(nodes) == expected
    assert resources.at_once(nodes) == sum(expected)


def test_the_plan_says_how_many_run_on_which_node() -> None:
    nodes = [SMALL, LARGE, LARGE]
    expected = (
        "resources: 1 CPU per trial; 9 at once (Ray has 9 CPU: room for 4 on each of 2 nodes, 1 on one node)"
    )
    assert Resources().in_words(nodes) == expected
    assert Resources(max_concurrent=3).in_words(nodes).endswith("3 at once (--max-concurrent)")
    assert Resources().in_words([LARGE]) == "resources: 1 CPU per trial; 4 at once (Ray has 4 CPU)"


def test_nodes_in_words() -> None:
    assert nodes_in_words([LARGE], ["CPU"]) == "4 CPU"
    assert nodes_in_words([SMALL, CARDS, SMALL], ["CPU", "GPU"]) == (
        "2 nodes with 1 CPU, 0 GPU and 1 node with 8 CPU, 2 GPU"
    )
