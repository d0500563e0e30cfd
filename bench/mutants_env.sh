#!/usr/bin/env bash
# bench/mutants_env.sh DIR: the virtual environment whose libraries bench/mutants.py mutates, made only where it is missing.
#
#   PYTHON=python3.11       the interpreter it is made with
#   OPGUARD_TORCH_BASE=DIR  a virtual environment whose torch and numpy it shares (default: it gets its own)
#   OPGUARD_TORCH=SPEC      the PyTorch it gets (default: torch==2.13.0)
set -euo pipefail
dir=$1
[ -f "$dir/.opguard-mutants" ] && exit 0

"${PYTHON:-python3}" -m venv "$dir"
pip=("$dir/bin/python" -m pip install -q --disable-pip-version-check)
purelib='import sysconfig; print(sysconfig.get_paths()["purelib"])'
site=$("$dir/bin/python" -c "$purelib")
if [ -n "${OPGUARD_TORCH_BASE:-}" ]; then
  "$OPGUARD_TORCH_BASE/bin/python" -c "$purelib" >"$site/base.pth"
else
  "${pip[@]}" "${OPGUARD_TORCH:-torch==2.13.0}" numpy
fi
# What these libraries need besides torch, so that pip never looks for another one.
"${pip[@]}" setuptools packaging pyyaml huggingface_hub safetensors pillow psutil tokenizers regex tqdm filelock requests \
  importlib_metadata httpx typer
"${pip[@]}" --no-deps transformers==5.23.0 accelerate==1.15.0 timm==1.0.31 torchvision==0.28.0 diffusers==0.38.0 peft==0.20.0 \
  megatron-core==0.16.1

# The wheel of torchvision is built for CUDA: beside a CPU torch its library does not load, and its import stops at
# operators without a schema. timm needs none of them, so schemas are enough.
if ! "$dir/bin/python" -c 'import torchvision' 2>/dev/null; then
  cat >>"$site/torchvision/extension.py" <<'END'

if not _has_ops():
    for _name in ("nms", "qnms"):
        torch.library.define("torchvision::" + _name, "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
END
  "$dir/bin/python" -c 'import torchvision'
fi
touch "$dir/.opguard-mutants"
