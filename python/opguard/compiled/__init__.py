"""Probes in graphs: torch.compile's, and those of a device."""
