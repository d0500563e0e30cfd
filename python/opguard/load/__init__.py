"""What gets a program started and its sources rewritten."""
