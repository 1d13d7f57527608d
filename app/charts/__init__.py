"""Charts: pure functions from a table to a plotly figure, at most 5,000 marks each."""

import importlib

# Whole, before the first figure: plotly looks for pandas in sys.modules, and another thread that is half
# through importing it (duckdb does so on its first query) would break it.
importlib.import_module("pandas")
