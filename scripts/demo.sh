#!/usr/bin/env bash
# scripts/demo.sh: opguard diff on examples/minitrain and a copy with one wrong line.
# The report is kept; a second call with nothing changed prints it again.
set -euo pipefail
cd "$(dirname "$0")/.."

demo=$PWD/build/demo
opguard=$PWD/build/release/src/cli/opguard
mkdir -p "$demo"

# Everything the report depends on.
state=$({ find examples python build/release/python "$opguard" -name __pycache__ -prune -o -type f -print 2>/dev/null |
          sort | xargs sha256sum; cat .venv/.opguard-requirements; } | sha256sum)
command="opguard diff examples/minitrain build/demo/faulty -- python train.py --steps 3"
if [ -f "$demo/report.txt" ] && [ "$(cat "$demo/state" 2>/dev/null)" = "$state" ]; then
  echo "demo: nothing changed since this report was made"
  echo "\$ $command"
  cat "$demo/report.txt"
  exit 0
fi

echo "demo: writing build/demo/faulty, a copy of examples/minitrain with one wrong line:"
rm -rf "$demo/faulty" "$demo/report.txt" "$demo/state"
.venv/bin/python examples/make_faulty.py "$demo/faulty" | sed 's/^/    /'
colour=never
[ -t 1 ] && [ -z "${NO_COLOR:-}" ] && colour=always
echo "demo: running both, first traced, then instrumented (half a minute)"
echo "\$ $command"
export PATH=$PWD/.venv/bin:$PATH
status=0
"$opguard" diff --color "$colour" examples/minitrain build/demo/faulty -- python train.py --steps 3 |
  tee "$demo/report.new" || status=${PIPESTATUS[0]}
# 1 is the right answer: the two programs differ.
if [ "$status" != 1 ]; then
  echo "demo: error: opguard diff ended with $status, not 1" >&2
  exit 2
fi
mv "$demo/report.new" "$demo/report.txt"
printf '%s\n' "$state" >"$demo/state"
