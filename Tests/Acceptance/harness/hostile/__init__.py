"""Hostile clients. Each is a function of a port and of `ends()`, which says when its time is up."""
