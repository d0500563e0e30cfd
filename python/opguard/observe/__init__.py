"""What `opguard doctor -- CMD` sees of a program: seeds, draws, switches, loaders, checkpoints."""
