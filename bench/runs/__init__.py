"""`bench run`: planning, preview and the driver."""
