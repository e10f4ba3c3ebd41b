"""Fair hyperparameter search: spaces, suggestions, trials, and Ray Tune that runs them."""
