#!/usr/bin/env bash
# history.sh: a repository `history` of six commits, the tag `known-good` on the first; one of the later ones moves the clip.
set -euo pipefail
git -c init.defaultBranch=main init -q history
cp good/train.py history/
cd history
commit() { git add -A && git commit -q -m "$1"; }
commit "Train a small classifier"
git tag known-good
sed -i 's/^EPOCHS, /# Two epochs are enough to see it learn.\n&/' train.py && commit "Say why two epochs"
sed -i 's/\bpart\b/piece/g' train.py && commit "Rename part to piece"
sed -i 's/^ *nn.utils.clip_grad_norm_/    &/' train.py && commit "Tidy the training loop"
sed -i 's/total:.4f/total:.6f/' train.py && commit "Print more digits"
echo "A small classifier." >README && commit "Add a README"
