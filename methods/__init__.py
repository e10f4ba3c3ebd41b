"""Federated-learning methods: one short file each, found by their file name."""
