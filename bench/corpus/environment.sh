#!/usr/bin/env bash
# bench/corpus/environment.sh DIR BASE: the virtual environment for `bench/corpus.py --repository`: that of bench/coverage_env.sh (BASE) and what examples import besides.
set -euo pipefail
dir=$1 base=$2
purelib='import sysconfig; print(sysconfig.get_paths()["purelib"])'
[ -d "$dir" ] || "$base/bin/python" -m venv --without-pip "$dir"
site=$("$dir/bin/python" -c "$purelib")
# The packages of BASE, and those that it shares.
"$base/bin/python" -c "$purelib" >"$site/base.pth"
cat "$("$base/bin/python" -c "$purelib")"/*.pth 2>/dev/null | grep '^/' >>"$site/base.pth" || true
"$base/bin/python" -m pip --python "$dir/bin/python" install -q --no-deps gymnasium cloudpickle farama-notifications matplotlib contourpy cycler \
  fonttools kiwisolver pyparsing requests urllib3 charset-normalizer certifi hydra-core omegaconf "antlr4-python3-runtime==4.9.*" six tabulate
