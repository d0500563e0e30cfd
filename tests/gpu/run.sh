#!/usr/bin/env bash
# tests/gpu/run.sh [CHECK...]: everything that needs a GPU, in under 10 minutes (BUDGET, seconds: default 560), without a network.
#
# Needs this tree and a Python whose torch sees the GPU (PYTHON, default python3). What runs inside programs, the tools and the kernels are taken
# from, in this order: OPGUARD_BUILD, a build folder; build/gpu-stage, made by tests/gpu/stage.sh on another machine and carried here; a build
# made here, in build/gpu, with cmake (CMAKE_ARGS are given to it), a C++20 compiler and clang++-19 or nvcc, without the tools where LLVM is not there.
# Writes as it goes OUT/gpu.json, OUT/gpu.txt, OUT/gpu.log (all that the checks said), OUT/build.log (OUT: default build/gpu/out).
# Exits 0 if every check passed, 1 if one failed, 2 if something could not be tried, 77 without a GPU.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
tree=$(cd "$here/../.." && pwd)
python=$(command -v "${PYTHON:-python3}") || { echo "tests/gpu: nothing was run: no ${PYTHON:-python3}"; exit 77; }
budget=${BUDGET:-560}
export PYTHONUNBUFFERED=1

if ! why=$(timeout 120 "$python" -c 'import sys
try:
    import torch
except ImportError:
    sys.exit("no torch in " + sys.executable)
sys.exit(None if torch.cuda.is_available() else "torch sees no GPU")' 2>&1); then
  echo "tests/gpu: nothing was run: $(tail -n 1 <<<"$why")"
  exit 77
fi

out=${OUT:-$tree/build/gpu/out}
mkdir -p "$out"
# Whether a build's extension loads in this Python.
loads() {
  PYTHONPATH=$1/python "$python" -c 'from opguard import _rt; _rt.fingerprint' >>"$out/build.log" 2>&1
}
: >"$out/build.log"
build=${OPGUARD_BUILD:-}
if [ -z "$build" ] && [ -f "$tree/build/gpu-stage/commit" ] && loads "$tree/build/gpu-stage"; then
  build=$tree/build/gpu-stage
  chmod +x "$build"/bin/* 2>/dev/null  # however it came here
fi
if [ -z "$build" ]; then
  build=$tree/build/gpu
  echo "tests/gpu: building (log: $out/build.log)" >&2
  mkdir -p "$build"
  generator=()
  command -v ninja >/dev/null && generator=(-G Ninja)
  configure() {
    timeout 120 cmake -S "$tree" -B "$build" --fresh "${generator[@]}" -DCMAKE_BUILD_TYPE=Release -DPython3_EXECUTABLE="$python" ${CMAKE_ARGS:-} "$@"
  }
  # Without LLVM and the other libraries of the tools, only what runs inside programs.
  targets=(cuda_plugin driver_recorder opguard_rt opguard_python)
  if configure >>"$out/build.log" 2>&1; then
    targets+=(opguard_inject opguard opguard-instrument)
  elif ! configure -DOPGUARD_RUNTIME_ONLY=ON >>"$out/build.log" 2>&1; then
    targets=()
  fi
  if [ ${#targets[@]} -eq 0 ] ||
    ! timeout $((budget / 2)) cmake --build "$build" --parallel "$(nproc)" --target "${targets[@]}" >>"$out/build.log" 2>&1 ||
    ! loads "$build"; then
    tail -n 30 "$out/build.log"
    echo "tests/gpu: the build failed; tests/gpu/stage.sh makes one elsewhere"
    exit 2
  fi
fi
exec env OPGUARD_BUILD="$build" "$python" "$here/run_checks.py" --out "$out" --seconds $((budget - SECONDS)) "$@"
