"""The benchmarks behind `bench speed`."""
