"""Faults put into a training from outside, and the truth about them, kept for tests only."""
