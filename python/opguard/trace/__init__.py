"""The preflight: what the user's expressions dispatched, called and launched."""
