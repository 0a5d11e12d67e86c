"""Rows in memory, on disk or on Dask, and the one loop of Algorithm 1 over them."""
