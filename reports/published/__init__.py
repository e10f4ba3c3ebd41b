"""Numbers that papers print."""
