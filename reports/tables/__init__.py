"""Paper-style tables made from numbers."""
