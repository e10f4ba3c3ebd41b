"""From records to paper: tables, statistics, figures. Knows nothing of training."""
