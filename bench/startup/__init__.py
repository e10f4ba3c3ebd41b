"""What saves seconds when a command starts and ends, and what is checked before it starts."""
