"""What is said about every method on its page, found from its class, its source and short runs."""
