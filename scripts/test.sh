#!/usr/bin/env bash
# scripts/test.sh [--all] [pytest arguments]: the tests; the C++ ones first. Prints the closing line of both runners.
#
#   --all  every test (about an hour on two cores); without it what a commit runs: tests/python/sizes.py
set -euo pipefail
cd "$(dirname "$0")/.."

size=commit
if [ "${1:-}" = --all ]; then
  size=all
  shift
fi
ctest=ctest
[ -x .venv/bin/ctest ] && ctest=$PWD/.venv/bin/ctest
export PATH=$PWD/.venv/bin:$PATH
failed=0
echo "test: ctest"
# All lines go to the log; the failures and the closing lines are shown.
if ! "$ctest" --preset release -j "$(nproc)" >build/ctest.log 2>&1; then
  failed=1
  grep -vE ' Passed |^ +Start ' build/ctest.log | head -n 400 || true
fi
grep -E '^[0-9]+% tests passed|^Total Test time' build/ctest.log || { failed=1; tail -n 20 build/ctest.log; }
echo "test: pytest --size $size"
# A worker a core; a file's tests stay together, since they share what was made for the first.
workers=$(nproc)
[ "$workers" -le 8 ] || workers=8
.venv/bin/python -m pytest -q -rs --durations=5 -n "$workers" --dist loadfile --size "$size" tests/python "$@" || failed=1
[ $size = all ] || echo "test: the deselected tests run with make test-all"
exit "$failed"
