"""The numbers of the training."""
STEPS, ROW, IGNORED = 3, 32, -100  # ROW: most words in one micro-batch
RATE, WARM, BETAS, EPS, DECAY = 4e-3, 2, (0.9, 0.98), 1e-3, 0.1  # WARM: steps up to the full rate, which then falls as a cosine
SMOOTH, LARGEST, KEPT, PULL = 0.1, 1.0, 0.8, 0.5  # KEPT: of the average of weights; PULL: of what it says on what the model learns
