"""Results that others can check: `bench submit` and `bench verify`."""
