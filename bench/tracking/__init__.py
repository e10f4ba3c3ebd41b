"""MLflow as a view of the records."""
