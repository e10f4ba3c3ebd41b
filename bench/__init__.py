"""The benchmarking harness: suites, data, engine, Ray Tune, tracking and the command line."""
