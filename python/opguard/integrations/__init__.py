"""Callbacks of trainers: opguard.integrations.hf, opguard.integrations.lightning. Each imports its library."""
