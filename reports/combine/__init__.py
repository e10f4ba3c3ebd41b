"""Several runs together: merged or compared."""
