"""Rows beyond one process: the one room that imports Dask."""
