#!/usr/bin/env bash
# tests/gpu/stage.sh: builds on this machine all that tests/gpu/run.sh needs, and lays it together in build/gpu-stage, for a machine with a GPU that has
# the same processor family, Python 3.10 or later with torch, glibc 2.36 or later and nothing else: no compiler, no network. run.sh takes it from there.
set -euo pipefail
tree=$(cd "$(dirname "$0")/../.." && pwd)
build=$tree/build/gpu-host stage=$tree/build/gpu-stage
generator=()
command -v ninja >/dev/null && generator=(-G Ninja)
# The libraries beside the programs go before the machine's own, for what those need in turn too: RPATH, not RUNPATH.
cmake -S "$tree" -B "$build" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release -DCMAKE_BUILD_RPATH_USE_ORIGIN=OFF \
  -DCMAKE_EXE_LINKER_FLAGS='-Wl,--disable-new-dtags,-rpath,\$ORIGIN/../lib' >"$tree/build/gpu-stage.log"
cmake --build "$build" --parallel "$(nproc)" \
  --target opguard opguard-instrument opguard_rt opguard_python opguard_inject cuda_plugin driver_recorder >>"$tree/build/gpu-stage.log"

rm -rf "$stage"
mkdir -p "$stage"/{bin,lib/python3/site-packages,share/opguard,tests/gpu,tests/device}
cp "$build"/src/cli/opguard "$stage/bin/"
ln -s opguard "$stage/bin/opguard-instrument"  # one program by two names: half of what is carried
cp "$build"/tests/gpu/*.so "$stage/tests/gpu/"
(cd "$build/python" && find opguard -name __pycache__ -prune -o -type f -print0 | tar --null -cf - -T -) | tee >(tar -xf - -C "$stage/lib/python3/site-packages") |
  (mkdir -p "$stage/python" && tar -xf - -C "$stage/python")
cp -r "$tree/templates" "$stage/share/opguard/templates"
# What every Linux with Python has is not carried.
ldd "$build/src/cli/opguard" | awk '$2 == "=>" && $3 ~ /^\// {print $3}' |
  grep -vE '/(libc|libm|libdl|libpthread|librt|libresolv|libstdc\+\+|libgcc_s)\.so' | xargs -r -I{} cp -L {} "$stage/lib/"
strip --strip-unneeded "$stage"/bin/* "$stage"/lib/*.so* "$stage"/tests/gpu/*.so "$stage"/python/opguard/*.so "$stage"/lib/python3/site-packages/opguard/*.so
git -C "$tree" describe --always --dirty >"$stage/commit" 2>/dev/null || echo unknown >"$stage/commit"
# The programs find what lies beside them, and start without this tree's build.
(cd / && "$stage/bin/opguard" --version && "$stage/bin/opguard" doctor) >>"$tree/build/gpu-stage.log" 2>&1 || true
grep -q "$stage/share/opguard/templates" "$tree/build/gpu-stage.log"
echo "$stage: $(du -sm "$stage" | cut -f1) MiB, commit $(cat "$stage/commit"); glibc $(
  objdump -T "$stage"/bin/* "$stage"/lib/*.so* "$stage"/tests/gpu/*.so "$stage"/python/opguard/*.so | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1) or later"
