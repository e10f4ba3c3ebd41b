"""References of wrappers: `around` makes one from the reference of the method inside."""
