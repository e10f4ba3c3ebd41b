"""A client's samples as features."""

from methods.base import Batch, Batches, Task, Tree


def embedded(task: Task, params: Tree, batches: Batches) -> Batch:
    """All samples of a client, with what the classifier works on in place of x.

    In bounded pieces, and in evaluation mode.
    """
    with task.evaluation():
        return Batch.joined(piece.with_inputs(task.embed(params, piece.x)) for piece in batches.once())
