"""Ingredients that several methods share."""
