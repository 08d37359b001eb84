"""The model runtime: one request, one stream of chunks, one terminal finish."""
