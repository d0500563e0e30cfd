#!/usr/bin/env bash
# scripts/setup.sh [tool]: Debian packages, .venv and build/release, each made only when something is missing.
#
#   tool                    what runs opguard; without it, what builds and runs every test as well
#   PYTHON=python3.12       the interpreter of .venv (default: the first of python3.11, 3.12, 3.13, 3.10, python3)
#   OPGUARD_TORCH=SPEC      the PyTorch of .venv as a pip requirement, URL or wheel file (default: torch==2.13.0)
set -euo pipefail
cd "$(dirname "$0")/.."

want=${1:-all}
case $want in tool | all) ;; *) echo "setup: error: 'tool' or nothing, not '$want'" >&2; exit 2 ;; esac
torch=${OPGUARD_TORCH:-torch==2.13.0}
log=$PWD/build/setup.log
mkdir -p build
: >"$log"

say() { printf '%s\n' "setup: $*"; }

# run WHAT COMMAND...: the command's output goes to the log; it is shown only when the command fails.
run() {
  local what=$1
  shift
  if ! "$@" >>"$log" 2>&1; then
    tail -n 40 "$log" >&2
    echo "setup: error: $what failed: $* (all output: $log)" >&2
    exit 2
  fi
}

# ---- Debian packages. A tool counts as there when its command is, whoever installed it.
missing=()
need_command() { command -v "$1" >/dev/null || missing+=("$2"); }
need_package() { dpkg -s "$1" 2>/dev/null | grep -q '^Status: install ok installed' || missing+=("$1"); }

for name in ${PYTHON:-python3.11 python3.12 python3.13 python3.10 python3}; do
  # A version manager's shim is there for versions it cannot run.
  if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
    python=$(command -v "$name")
    break
  fi
done
[ -n "${python:-}" ] || { echo "setup: error: no Python 3.10 or newer; set PYTHON to one" >&2; exit 2; }

if command -v dpkg >/dev/null; then
  need_command g++ g++
  need_command cmake cmake
  need_command ninja ninja-build
  need_command npm npm
  need_command pkg-config pkg-config
  packages="llvm-19-dev libzstd-dev zlib1g-dev libgit2-dev nlohmann-json3-dev libcli11-dev libtomlplusplus-dev libprotozero-dev"
  if [ $want = all ]; then
    need_command ccache ccache
    # The shells that read what `opguard completion` prints.
    need_command zsh zsh
    need_command fish fish
    packages="$packages libgtest-dev libgmock-dev"
  fi
  # clang compiles the CUDA kernels; no toolkit is needed.
  if [ $want = all ] || [ -e /dev/nvidiactl ]; then need_command clang++-19 clang-19; fi
  for package in $packages; do need_package "$package"; done
  # Debian splits venv and the C headers off its own interpreter; others bring both.
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  "$python" -c 'import venv, ensurepip' 2>/dev/null || missing+=("python$version-venv")
  "$python" -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")))' ||
    missing+=("python$version-dev")
  if [ ${#missing[@]} -gt 0 ]; then
    say "installing Debian packages: ${missing[*]}"
    root=()
    if [ "$(id -u)" != 0 ]; then
      command -v sudo >/dev/null ||
        { echo "setup: error: neither root nor sudo; install: ${missing[*]}" >&2; exit 2; }
      root=(sudo)
    fi
    run "apt-get update" "${root[@]}" apt-get update -q
    run "apt-get install" "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get install -q -y --no-install-recommends "${missing[@]}"
  fi
else
  say "not a Debian system: taking the packages named in README.md as installed"
fi

# ---- .venv. Its packages come in while the C++ is compiled.
[ -x .venv/bin/python ] || { say "making .venv with $python"; run "venv" "$python" -m venv .venv; }
requirements="$torch numpy"
[ $want = tool ] || requirements="$requirements pandas pyarrow perfetto jsonschema pytest pytest-xdist scikit-build-core>=0.11 uv safetensors polars duckdb ruff isort moto[s3,server] fsspec ray transformers accelerate triton"
cmake=cmake
if ! cmake --version | awk 'NR==1 { split($3, v, "."); exit !(v[1] > 3 || v[1] == 3 && v[2] >= 25) }'; then
  say "cmake here is older than 3.25: taking a newer one into .venv"
  run "pip install cmake" .venv/bin/pip install -q --disable-pip-version-check "cmake>=3.25,<4"
  cmake=$PWD/.venv/bin/cmake
fi
pip_job=
trap '[ -z "$pip_job" ] || kill "$pip_job" 2>/dev/null || true' EXIT
# What was installed for the tests is enough for the tool.
case "$(cat .venv/.opguard-requirements 2>/dev/null) " in "$requirements "*) installed=yes ;; *) installed= ;; esac
if [ -z "$installed" ]; then
  say "installing into .venv: $requirements (in the background)"
  # shellcheck disable=SC2086  # the words are requirements
  .venv/bin/pip install -q --disable-pip-version-check $requirements >build/setup-pip.log 2>&1 &
  pip_job=$!
fi

# ---- build/release. CMake configures again by itself when its files change.
tests=ON
[ $want = all ] || tests=OFF
if [ ! -f build/release/build.ninja ] ||
  { [ $want = all ] && grep -q '^OPGUARD_BUILD_TESTS:BOOL=OFF' build/release/CMakeCache.txt; }; then
  say "configuring build/release"
  run "cmake" "$cmake" --preset release "-DPython3_EXECUTABLE=$PWD/.venv/bin/python" "-DOPGUARD_BUILD_TESTS=$tests"
fi
target=all
[ $want = all ] || target=tool
say "building (two minutes the first time on two cores)"
# ninja's own progress: one line on a terminal, and in the log.
if [ -t 1 ]; then
  "$cmake" --build build/release --target $target || exit 2
else
  run "the build" "$cmake" --build build/release --target $target
fi
ln -sf ../../build/release/src/cli/opguard .venv/bin/opguard
ln -sf opguard .venv/bin/opguard-instrument

if [ -n "$pip_job" ]; then
  say "waiting for pip"
  if ! wait "$pip_job"; then
    cat build/setup-pip.log >&2
    echo "setup: error: pip install $requirements failed; OPGUARD_TORCH names another PyTorch" >&2
    exit 2
  fi
  pip_job=
  printf '%s\n' "$requirements" >.venv/.opguard-requirements
fi
# pre-commit and check-jsonschema, which tests run.
[ $want = tool ] || run "scripts/ci_tools.sh" scripts/ci_tools.sh
say "ready: .venv/bin/opguard"
