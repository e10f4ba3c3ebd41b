"""How the work of a round's clients is computed."""
