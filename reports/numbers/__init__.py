"""Accuracies, averages, statistics and rankings, computed from records."""
