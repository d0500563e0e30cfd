#!/usr/bin/env bash
# scripts/release.sh [--tag vX.Y.Z]: sdist and wheel in dist/, after every check that a release must pass.
# Without --tag the tag is the one on this commit.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { echo "release: error: $*" >&2; exit 1; }
tag=
if [ "${1:-}" = --tag ]; then tag=${2:?--tag takes a name}; fi
version=$(sed -n 's/^project(opguard VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)

# The cheap checks first: none of them waits for a compiler.
changed=$(git status --porcelain)
[ -z "$changed" ] || fail "the tree is not clean: $(printf '%s\n' "$changed" | head -n 1)"
[ -n "$tag" ] || tag=$(git tag --points-at HEAD --list 'v*' | head -n 1)
[ -n "$tag" ] || fail "no tag on this commit: git tag v$version"
[ "$tag" = "v$version" ] || fail "the tag is $tag, and CMakeLists.txt says $version"
heading=$(grep -m 1 -F "## $version " CHANGELOG.md) || fail "CHANGELOG.md has no section '## $version'"
case $heading in *unreleased*) fail "CHANGELOG.md still says '$heading'" ;; esac
if [ "${OPGUARD_RELEASE_CHECK_ONLY:-}" ]; then
  echo "release: $tag can be made"
  exit 0
fi

rm -rf dist/release
mkdir -p dist/release
scripts/wheel.sh dist/release
build/venv-wheel/bin/python -m build --quiet --sdist --no-isolation --outdir dist/release .
build/venv-wheel/bin/twine check --strict dist/release/*

trial=$(mktemp -d)
trap 'rm -rf "$trial"' EXIT
# A file that the sdist lacks shows when the sdist alone is built.
CC=${CC:-cc} CXX=${CXX:-c++} build/venv-wheel/bin/pip wheel -q --disable-pip-version-check --no-deps \
  --no-build-isolation --wheel-dir "$trial/sdist" dist/release/*.tar.gz || fail "the sdist cannot be built"

# It is the wheel itself that must work, in an environment that has nothing else.
build/venv-wheel/bin/python -m venv "$trial"
"$trial/bin/pip" install -q --disable-pip-version-check --no-index --no-deps dist/release/*.whl
said=$("$trial/bin/opguard" --version)
case $said in "opguard $version"*) ;; *) fail "the wheel's program says '$said', not $version" ;; esac
"$trial/bin/opguard-instrument" --help >/dev/null || fail "the wheel's opguard-instrument does not run"
echo "release: $tag"
ls dist/release/*
