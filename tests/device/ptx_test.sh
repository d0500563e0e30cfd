#!/usr/bin/env bash
# ptx_test.sh PTX...: the driver takes the kernels, as far as a machine without one can tell: their
# ISA is no newer than CUDA 12.0's, and ptxas assembles them for every architecture from sm_75 on
# that it knows, with the registers that two blocks a multiprocessor leave. Three architectures
# unless OPGUARD_EVERY_ARCHITECTURE is set. Exit 77: no ptxas.
set -euo pipefail

for ptx in "$@"; do
  version=$(sed -n 's/^\.version //p' "$ptx")
  awk -v v="$version" 'BEGIN { exit !(v >= 6.3 && v <= 8.0) }' ||
    { echo "$ptx: .version $version is not one that CUDA 12.0's driver takes"; exit 1; }
  grep -q '^\.target sm_75' "$ptx" || { echo "$ptx: not for sm_75"; exit 1; }
  # The state of a thread is in registers: a .local variable would be slow beyond notice of a test.
  ! grep -q '__local_depot' "$ptx" || { echo "$ptx: has variables in local memory"; exit 1; }
  # Nothing of a toolkit's: no vprintf, no __assertfail, no device library.
  ! grep -q '^\.extern' "$ptx" || { echo "$ptx: has unresolved symbols"; exit 1; }
done

ptxas=${PTXAS:-$(command -v ptxas || true)}
[ -n "$ptxas" ] || { echo "skipped: no ptxas here, nothing was assembled"; exit 77; }
known=$("$ptxas" --help | grep -o 'sm_[0-9]*' | sort -u)
out=$(mktemp)
trap 'rm -f "$out"' EXIT
tried=0
architectures="sm_75 sm_90 sm_120"
[ -z "${OPGUARD_EVERY_ARCHITECTURE:-}" ] ||
  architectures="sm_75 sm_80 sm_86 sm_87 sm_89 sm_90 sm_100 sm_103 sm_110 sm_120 sm_121"
for arch in $architectures; do
  grep -qx "$arch" <<<"$known" || continue
  for ptx in "$@"; do
    # Small and large differ in the size of their parameter.
    [ "$arch" = sm_90 ] || [ "$ptx" = "$1" ] || [ -n "${OPGUARD_EVERY_ARCHITECTURE:-}" ] || continue
    text=$("$ptxas" -arch="$arch" -v "$ptx" -o "$out" 2>&1) || { echo "$text"; exit 1; }
    registers=$(sed -n 's/.*Used \([0-9]*\) registers.*/\1/p' <<<"$text")
    echo "$arch $(basename "$ptx"): $registers registers"
    [ "$registers" -le 128 ] || { echo "more than 128 registers"; exit 1; }
    # What is kept in memory is written by every thread: a third of a small launch's time.
    [[ "$ptx" != *plain* ]] || [ "$arch" != sm_90 ] || grep -q ' 0 bytes spill stores' <<<"$text" ||
      { echo "$text"; echo "a plain kernel keeps registers in memory"; exit 1; }
  done
  tried=$((tried + 1))
done
[ "$tried" -gt 0 ] || { echo "ptxas knows none of the architectures"; exit 1; }
