"""Pieces of pages as HTML: pure functions from rows to markup."""
