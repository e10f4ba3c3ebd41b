"""Tests, in folders that mirror the packages; `tests/kit` has the builders they share."""
