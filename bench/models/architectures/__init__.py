"""One file a model; the file's name is the model's."""
