"""Studies over suites, and results that others can check: `bench study`, `submit` and `verify`."""
