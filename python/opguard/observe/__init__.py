"""What `opguard doctor -- CMD` sees of a program: who seeds, who draws, which switches stand, what a resume restores."""
