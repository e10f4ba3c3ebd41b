"""The sums that least squares needs of a client's samples, as they travel."""

import torch
from torch import Tensor

from methods.base import State


def one_hot(labels: Tensor, classes: int) -> Tensor:
    """Labels as rows of a single 1, in double precision."""
    return torch.nn.functional.one_hot(labels, classes).double()


def with_one(z: Tensor) -> Tensor:
    """(z, 1) for every row, so that the last weight is a bias."""
    return torch.cat([z, z.new_ones(len(z), 1)], dim=1)


def triangle(matrix: Tensor) -> Tensor:
    """The upper triangle of a symmetric matrix, row by row."""
    rows, columns = torch.triu_indices(len(matrix), len(matrix), device=matrix.device)
    return matrix[rows, columns]


def symmetric(numbers: Tensor, size: int) -> Tensor:
    """The matrix of that size whose upper triangle this is."""
    rows, columns = torch.triu_indices(size, size, device=numbers.device)
    matrix = numbers.new_zeros(size, size)
    matrix[rows, columns] = numbers
    matrix[columns, rows] = numbers
    return matrix


def added(before: State | None, more: State) -> State:
    """Sums with one more client's part; None: it is the first."""
    return more if before is None else {key: before[key] + more[key] for key in more}


def ridge_solution(gram: Tensor, products: Tensor, lam: float) -> Tensor:
    """(A + λI)⁻¹ b."""
    eye = torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
    solution: Tensor = torch.linalg.solve(gram + lam * eye, products)
    return solution
