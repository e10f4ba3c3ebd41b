"""One file per dataset; a dataset is named after its file."""
