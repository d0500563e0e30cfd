#!/bin/sh
# An environment with Lightning for tests/python/test_recordings.py: build/venv-lightning, layered on .venv, whose torch
# and transformers it uses. Lightning is no requirement of opguard: it would bring a dozen packages for one test.
set -e
cd "$(dirname "$0")/.."
base=$(readlink -f .venv)
"$base/bin/python" -m venv --without-pip build/venv-lightning
site=$(build/venv-lightning/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
"$base/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > "$site/base.pth"
"$base/bin/python" -m pip --python build/venv-lightning/bin/python install --quiet lightning
