"""Ray: the cluster, and the trials that run on it."""
