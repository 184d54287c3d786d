"""Clouds that have models of several makers: which API each model has there, and its dialects. Pure."""
