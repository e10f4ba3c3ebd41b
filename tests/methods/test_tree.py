import copy
import pickle

import numpy as np
import pytest
import torch
from torch.func import vmap

from methods.core.tree import Tree, leaves_of, size_in_bytes, weighted_sum, where

A = {"w": np.array([[1.5, -2.0], [0.25, 4.0]]), "b": np.array([0.5, -8.0])}
B = {"w": np.array([[0.5, 3.0], [-1.0, 2.0]]), "b": np.array([2.0, 0.25])}


def tree(arrays: dict[str, np.ndarray], steps: int | None = None) -> Tree:
    """Floats of these values, and with `steps` an integer leaf in their midst."""
    leaves = {name: torch.tensor(array, dtype=torch.float32) for name, array in arrays.items()}
    if steps is not None:
        leaves = {"w": leaves["w"], "steps": torch.tensor(steps), "b": leaves["b"]}
    return Tree(leaves)


def assert_holds(result: Tree, expected: dict[str, np.ndarray]) -> None:
    assert set(result) - {"steps"} == set(expected)
    for name, array in expected.items():
        np.testing.assert_array_equal(result[name].numpy(), array)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (tree(A) + tree(B), {k: A[k] + B[k] for k in A}),
        (tree(A) - tree(B), {k: A[k] - B[k] for k in A}),
        (tree(A) * tree(B), {k: A[k] * B[k] for k in A}),
        (tree(A) / tree(B), {k: (A[k] / B[k]).astype(np.float32) for k in A}),
        (-tree(A), {k: -A[k] for k in A}),
        (tree(A) * 0.5, {k: A[k] * 0.5 for k in A}),
        (0.5 * tree(A), {k: A[k] * 0.5 for k in A}),
        (tree(A) / 4, {k: A[k] / 4 for k in A}),
        (tree(A) + 1, {k: A[k] + 1 for k in A}),
        (1 + tree(A), {k: A[k] + 1 for k in A}),
        (tree(A) - 1, {k: A[k] - 1 for k in A}),
        (tree(A) * torch.tensor(2.0), {k: A[k] * 2 for k in A}),
        (tree(A) / torch.tensor(2), {k: A[k] / 2 for k in A}),
        (tree(A).zeros(), {k: A[k] * 0 for k in A}),
        (tree(A).map(torch.maximum, tree(B)), {k: np.maximum(A[k], B[k]) for k in A}),
    ],
)
def test_arithmetic_is_leaf_by_leaf(result: Tree, expected: dict[str, np.ndarray]) -> None:
    assert_holds(result, expected)
    assert all(leaf.dtype == torch.float32 for leaf in result.values())


def test_an_update_rule_reads_as_in_the_paper() -> None:
    control, server_control, x, y = (tree({k: v * n for k, v in A.items()}) for n in (1, 2, 3, 5))
    assert_holds(control - server_control + (x - y) / (4 * 0.5), {k: A[k] * (1 - 2 + (3 - 5) / 2) for k in A})


def test_dot_and_norms_are_over_all_leaves() -> None:
    flat_a, flat_b = (np.concatenate([v.ravel() for v in each.values()]) for each in (A, B))
    assert float(tree(A).dot(tree(B))) == pytest.approx(flat_a @ flat_b)
    assert float(tree(A).sqnorm()) == pytest.approx(flat_a @ flat_a)
    assert float(tree(A).norm()) == pytest.approx(np.linalg.norm(flat_a))


def test_integer_leaves_pass_through_from_the_left() -> None:
    one, other = tree(A, steps=3), tree(B, steps=40)
    for result in (one + other, one - other, one * 2.5, one / other, -one, one.zeros()):
        assert result["steps"].dtype == torch.int64
        assert int(result["steps"]) == 3
        assert list(result) == ["w", "steps", "b"]


def test_integer_leaves_do_not_count_in_products() -> None:
    assert float(tree(A, steps=1000).dot(tree(B, steps=1000))) == float(tree(A).dot(tree(B)))
    assert float(tree(A, steps=1000).sqnorm()) == float(tree(A).sqnorm())


def test_operands_stay_as_they_are() -> None:
    one, other = tree(A), tree(B)
    _ = one + other, one * 3, -one, one.zeros(), weighted_sum([one, other], [0.5, 0.5])
    assert_holds(one, A)
    assert_holds(other, B)


def test_a_tree_cannot_be_changed_from_outside() -> None:
    leaves = {"w": torch.zeros(2)}
    made = Tree(leaves)
    leaves["v"] = torch.zeros(1)
    assert list(made) == ["w"]
    with pytest.raises(TypeError):
        made["w"] = torch.ones(2)  # type: ignore[index]


def test_trees_of_other_names_do_not_mix() -> None:
    with pytest.raises(KeyError):
        tree(A) + Tree({"w": torch.zeros(2, 2)})


def test_weighted_sum_is_the_mean_that_numpy_gives() -> None:
    rng = np.random.default_rng(0)
    values = [{"w": rng.normal(size=(3, 4)), "b": rng.normal(size=5)} for _ in range(7)]
    weights = rng.dirichlet(np.ones(7)).tolist()
    total = weighted_sum([tree(each) for each in values], weights)
    for name in ("w", "b"):
        expected = np.average([each[name] for each in values], axis=0, weights=weights)
        np.testing.assert_allclose(total[name].numpy(), expected, atol=1e-6)


def test_weighted_sum_adds_in_the_given_order() -> None:
    """In float32 one is lost beside 2²⁴, so that another order would give another sum."""
    large, one = Tree({"w": torch.tensor([2.0**24])}), Tree({"w": torch.tensor([1.0])})
    assert weighted_sum([large, one, one], [1.0] * 3)["w"].tolist() == [2.0**24]
    assert weighted_sum([one, one, large], [1.0] * 3)["w"].tolist() == [2.0**24 + 2]


def test_weighted_sum_of_one_tree_is_that_tree() -> None:
    total = weighted_sum([tree(A, steps=7)], [1.0])
    assert_holds(total, A)
    assert int(total["steps"]) == 7


def test_weighted_sum_takes_integers_from_the_first_tree() -> None:
    trees = [
        Tree({"steps": torch.tensor(count), "on": torch.tensor(flag), "w": torch.tensor(value)})
        for count, flag, value in ((5, True, 2.0), (9, False, 4.0))
    ]
    total = weighted_sum(trees, [0.25, 0.75])
    assert (int(total["steps"]), total["steps"].dtype) == (5, torch.int64)
    assert (bool(total["on"]), total["on"].dtype) == (True, torch.bool)
    assert float(total["w"]) == 3.5
    assert list(total) == ["steps", "on", "w"]


def test_parts_of_a_tree() -> None:
    whole = Tree({name: torch.tensor(float(i)) for i, name in enumerate(["a.x", "a.y", "ab.x", "b"])})
    assert list(whole.only({"b", "a.x"})) == ["a.x", "b"]
    assert list(whole.without(["a.y"])) == ["a.x", "ab.x", "b"]
    assert list(whole.below("a")) == ["x", "y"]
    assert float((whole | Tree({"b": torch.tensor(9.0)}))["b"]) == 9.0
    assert list(Tree({"b": torch.tensor(9.0)}) | whole) == ["b", "a.x", "a.y", "ab.x"]


def test_where_chooses_a_whole_tree() -> None:
    for condition, expected in ((True, A), (False, B)):
        assert_holds(where(torch.tensor(condition), tree(A), tree(B)), expected)


def test_detach_cuts_the_gradient() -> None:
    leaf = torch.ones(2, requires_grad=True)
    assert not Tree({"w": leaf * 2}).detach()["w"].requires_grad


def test_bytes_and_leaves_of_a_nest() -> None:
    nest = {
        "tree": Tree(
            {"half": torch.zeros(3, dtype=torch.float16), "whole": torch.zeros(2, dtype=torch.int64)}
        ),
        "list": [torch.zeros(4).double(), (torch.zeros(5).bool(),)],
        "part": torch.zeros(100)[:7],
        "number": 12,
    }
    assert size_in_bytes(nest) == 3 * 2 + 2 * 8 + 4 * 8 + 5 * 1 + 7 * 4
    assert [len(leaf) for leaf in leaves_of(nest)] == [3, 2, 4, 5, 7]
    assert size_in_bytes({}) == 0


def test_trees_can_be_stacked_and_sent() -> None:
    stacked = Tree({"w": torch.arange(6.0).view(3, 2)})
    doubled = vmap(lambda one: one * 2 + one)(stacked)
    assert torch.equal(doubled["w"], stacked["w"] * 3)
    for copied in (pickle.loads(pickle.dumps(tree(A, steps=2))), copy.deepcopy(tree(A, steps=2))):
        assert isinstance(copied, Tree)
        assert_holds(copied, A)
