#!/bin/sh
# pre-commit and check-jsonschema, into build/venv-ci: tests of the hook and of the GitHub Action want them, and say so without.
set -eu
cd "$(dirname "$0")/.."
[ -x build/venv-ci/bin/pre-commit ] && [ -x build/venv-ci/bin/check-jsonschema ] && exit 0
python3 -m venv build/venv-ci
build/venv-ci/bin/pip install --quiet --disable-pip-version-check "pre-commit>=4" "check-jsonschema>=0.30"
