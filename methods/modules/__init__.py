"""Network modules that methods know by name."""
