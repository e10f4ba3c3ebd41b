"""One file a dataset, found by its file name."""
