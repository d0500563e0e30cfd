import os
import sys
import tempfile

import torch
from recipe import Recipe

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        for part, until in enumerate((STEPS // 2, STEPS)):
            torch.manual_seed(SEED + part)
            recipe = Recipe(folder)
            recipe.load_checkpoint()
            recipe.run(until)
            recipe.save_checkpoint()
    sys.stdout.flush()
