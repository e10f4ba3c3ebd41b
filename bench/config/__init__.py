"""Configurations: what a cell is, section by section, and the names that may stand in one."""
