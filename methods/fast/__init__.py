"""What makes training fast; authors of methods need not read it."""
