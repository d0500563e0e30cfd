"""The numbers of the training."""
STEPS, BATCH, CLASSES = 4, 12, 10
RATE, WARM, LAST, LAYER = 0.2, 2, 0.1, 0.7  # WARM: steps up to RATE; LAST: what is left of it in the end; LAYER: the rate of a layer, by that of the next
MOMENTUM, DECAY, LARGEST = 0.9, 0.02, 1.0
SMOOTH, MIX, KEPT = 0.1, 0.6, 0.9  # MIX: of the beta distribution; KEPT: the most that the average keeps of itself in a step
