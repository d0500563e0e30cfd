"""What the recording asks of Python: start and end, settings, names, generators, buffers."""
