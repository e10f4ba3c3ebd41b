"""`python -m bench` is `bench`."""

from bench.cli.app import main

main()
