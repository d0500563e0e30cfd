#!/usr/bin/env bash
# bench/tolerance_env.sh DIR: the virtual environment in which bench/tolerance.py and bench/ports.py run their programs,
# made only where it is missing: timm, torchvision and megatron-core beside the torch and transformers of another one.
#
#   OPGUARD_TORCH_BASE=DIR  the virtual environment that has torch, numpy and transformers (default: .venv)
set -euo pipefail
dir=$1
[ -f "$dir/.opguard-tolerance" ] && exit 0

base=${OPGUARD_TORCH_BASE:-$(cd "$(dirname "$0")/.." && pwd)/.venv}
purelib='import sysconfig; print(sysconfig.get_paths()["purelib"])'
"$base/bin/python" -m venv "$dir"
site=$("$dir/bin/python" -c "$purelib")
"$base/bin/python" -c "$purelib" >"$site/base.pth"
pip=("$dir/bin/python" -m pip install -q --disable-pip-version-check --no-deps)
"${pip[@]}" timm==1.0.31 torchvision==0.28.0 megatron-core==0.16.1 pillow
"$dir/bin/python" -c 'import torch, transformers' # the base must have them: nothing here brings another torch

# The wheel of torchvision is built for CUDA: beside a CPU torch its library does not load. timm needs no operator of it.
if ! "$dir/bin/python" -c 'import torchvision' 2>/dev/null; then
  cat >>"$site/torchvision/extension.py" <<'PATCH'

if not _has_ops():
    for _name in ("nms", "qnms"):
        torch.library.define("torchvision::" + _name, "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
PATCH
fi
"$dir/bin/python" -c 'import timm, megatron.core.models.gpt'
touch "$dir/.opguard-tolerance"
