"""Figures and tables from records alone."""
