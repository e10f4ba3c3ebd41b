"""One file per model; a model is named after its file."""
