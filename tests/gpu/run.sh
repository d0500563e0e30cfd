#!/usr/bin/env bash
# tests/gpu/run.sh [CHECK...]: everything that needs a GPU, in under 10 minutes. Needs this tree, a Python
# whose torch sees the GPU (PYTHON, default python3), cmake and a C++20 compiler; clang++-19 or nvcc for the kernels.
# Builds what it needs in build/gpu (OPGUARD_BUILD: a whole build that is there already). Writes
# OUT/gpu.json and OUT/gpu.txt (OUT: default build/gpu/out). Exits 0 if every check passed, 1 if one failed,
# 2 if something could not be tried, 77 without a GPU.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
tree=$(cd "$here/../.." && pwd)
python=${PYTHON:-python3}
export PYTHONUNBUFFERED=1

if ! why=$("$python" -c 'import sys
try:
    import torch
except ImportError:
    sys.exit("no torch in " + sys.executable)
sys.exit(None if torch.cuda.is_available() else "torch sees no GPU")' 2>&1); then
  echo "tests/gpu: nothing was run: $(tail -n 1 <<<"$why")"
  exit 77
fi

build=${OPGUARD_BUILD:-$tree/build/gpu}
out=${OUT:-$tree/build/gpu/out}
mkdir -p "$build" "$out"
if [ -z "${OPGUARD_BUILD:-}" ]; then
  echo "tests/gpu: building (log: $out/build.log)" >&2
  generator=()
  targets() {
    grep -q 'OPGUARD_RUNTIME_ONLY:BOOL=ON' "$build/CMakeCache.txt" && echo all ||
      echo cuda_plugin opguard_rt opguard_python opguard opguard-instrument
  }
  command -v ninja >/dev/null && generator=(-G Ninja)
  # Without LLVM and the other libraries of the tools, only what runs inside programs.
  if ! { cmake -S "$tree" -B "$build" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release \
      -DPython3_EXECUTABLE="$(command -v "$python")" ||
      cmake -S "$tree" -B "$build" --fresh "${generator[@]}" -DCMAKE_BUILD_TYPE=Release \
        -DOPGUARD_RUNTIME_ONLY=ON -DPython3_EXECUTABLE="$(command -v "$python")"; } >"$out/build.log" 2>&1 ||
    ! cmake --build "$build" --parallel "$(nproc)" --target $(targets) >>"$out/build.log" 2>&1; then
    tail -n 30 "$out/build.log"
    echo "tests/gpu: the build failed"
    exit 2
  fi
fi
export OPGUARD_BUILD=$build
plugin=$build/tests/gpu/cuda_plugin.so
tool=$build/src/cli/opguard

# A check's arguments. Every one prints one JSON object on stdout and exits 0, 1, or 77 (not tried).
arguments() {
  case $1 in
    check_fingerprint | bandwidth) echo "--plugin $plugin" ;;
    coverage) echo "--opguard $tool --python $(command -v "$python")" ;;
  esac
}

checks=("$@")
if [ ${#checks[@]} -eq 0 ]; then
  for file in "$here"/check_*.py "$here"/bandwidth.py "$here"/overhead.py "$here"/coverage.py; do
    [ -f "$file" ] && checks+=("$(basename "$file" .py)")
  done
fi

failed=0 untried=0
: >"$out/checks.jsonl"
{
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null || true
  "$python" -c 'import sys, torch; print("Python", sys.version.split()[0], "torch", torch.__version__, "CUDA", torch.version.cuda)'
  git -C "$tree" rev-parse --short HEAD 2>/dev/null | sed 's/^/commit /' || true
} | tee "$out/machine.txt" >"$out/gpu.txt"
for check in "${checks[@]}"; do
  if [ "$check" = coverage ] && [ ! -x "$tool" ]; then
    echo "$check: not tried: the tools were not built, LLVM is not here" | tee -a "$out/gpu.txt"
    untried=1
    continue
  fi
  # What is left of ten minutes, the build included; a check that hangs is killed and counts as failed.
  left=$((590 - SECONDS))
  [ "$left" -gt 5 ] || { echo "$check: not tried, the time is up" | tee -a "$out/gpu.txt"; untried=1; continue; }
  start=$SECONDS
  # shellcheck disable=SC2046  # words
  (cd "$here" && timeout -k 5 "$left" "$python" "$check.py" $(arguments "$check")) >"$out/$check.out" 2>"$out/$check.err"
  code=$?
  case $code in
    0) word=passed ;;
    77) word="not tried: $(tail -n 1 "$out/$check.out")" untried=1 ;;
    2) word="could not tell" untried=1 ;;
    *) word="FAILED (exit $code)" failed=1 ;;
  esac
  echo "$check: $word, $((SECONDS - start)) s" | tee -a "$out/gpu.txt"
  # A table that a check prints for people.
  if [ "$check" = bandwidth ] || [ "$check" = overhead ]; then tee -a "$out/gpu.txt" <"$out/$check.err"; fi
  [ "$code" -eq 0 ] || { tail -n 15 "$out/$check.err"; tail -c 2000 "$out/$check.out"; } | tee -a "$out/gpu.txt"
  CHECK=$check CODE=$code "$python" - "$out/$check.out" >>"$out/checks.jsonl" <<'PY'
import json, os, sys
text = open(sys.argv[1]).read()
try:
    found = json.loads(text[text.index("{"):])
except ValueError:
    found = {"output": text[-2000:]}
print(json.dumps({"name": os.environ["CHECK"], "exit": int(os.environ["CODE"]), **found}))
PY
done
"$python" - "$out" <<'PY'
import json, sys
folder = sys.argv[1]
lines = open(folder + "/machine.txt").read().splitlines()
checks = [json.loads(line) for line in open(folder + "/checks.jsonl")]
json.dump({"machine": lines, "checks": checks}, open(folder + "/gpu.json", "w"), indent=1)
PY
echo "tests/gpu: $SECONDS s; $out/gpu.json, $out/gpu.txt"
[ "$failed" -eq 0 ] || exit 1
exit $((untried * 2))
