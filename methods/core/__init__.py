"""The framework that methods are written in."""
