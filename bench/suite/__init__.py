"""Suites: their YAML model, loading, overrides, and the planning of cells."""
