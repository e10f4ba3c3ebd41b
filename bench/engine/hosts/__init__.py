"""Where the clients of a federation are computed: one by one, stacked, or in Ray actors."""
