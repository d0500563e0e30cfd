#!/usr/bin/env bash
# nvcc_test.sh SOURCE_DIR: nvcc, where it is, compiles the kernels from sm_75 to sm_120: to PTX for
# the oldest and the newest architecture and to machine code for sm_90, or, with
# OPGUARD_EVERY_ARCHITECTURE set, to machine code for all of them. Exit 77: no nvcc.
set -euo pipefail

nvcc=${NVCC:-$(command -v nvcc || true)}
[ -n "$nvcc" ] || { echo "skipped: no nvcc here, the kernels were compiled by clang alone"; exit 77; }
known=$("$nvcc" --list-gpu-code)
flags=()
add() { ! grep -qx "sm_$1" <<<"$known" || flags+=("-gencode=arch=compute_$1,code=$2_$1"); }
sizes="SMALL PLAIN_SMALL"
if [ -n "${OPGUARD_EVERY_ARCHITECTURE:-}" ]; then
  sizes="SMALL LARGE PLAIN_SMALL PLAIN_LARGE"
  for arch in 75 80 86 89 90 100 103 120; do add "$arch" sm; done
else
  add 75 compute
  add 90 sm
  add 120 compute
fi
[ ${#flags[@]} -gt 0 ] || { echo "nvcc knows none of the architectures"; exit 1; }
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
for size in $sizes; do
  "$nvcc" -std=c++20 -fatbin -t 2 "${flags[@]}" "-DOPGUARD_$size" -I"$1/src" \
    "$1/src/device/og1_kernel.cu" -o "$out/kernel.fatbin"
  [ -s "$out/kernel.fatbin" ]
  echo "$size: ${flags[*]}"
done
