"""How the clients of a round are computed: one after another, stacked, in Ray actors, or for debugging."""
