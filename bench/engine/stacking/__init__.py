"""Several cells at once: which of them one vmapped call computes, and that call."""
