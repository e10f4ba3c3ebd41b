"""What method files are built from: the parameter tree, batches, optimisers, losses and the task."""
