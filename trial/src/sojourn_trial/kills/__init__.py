"""Kills of any process of an application, and a comparison of its results with the input."""
