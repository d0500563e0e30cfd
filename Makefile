# Set-up is done by scripts/setup.sh, which repeats nothing that is there already.
.PHONY: help setup tool demo test test-all torture accuracy coverage mutants docs transcripts results wheel release format clean

help:
	@echo "make demo      two versions of a training program, and the first operator where they part"
	@echo "make tool      the same without running anything: .venv/bin/opguard"
	@echo "make test      what every commit must pass (twenty minutes with the set-up, on two cores)"
	@echo "make test-all  every test (an hour): before a release, and after a change to judgement or runtime"
	@echo "make torture   the run log under kills, cuts, flipped bits, full disks, fuzzers; figures in docs/results/reliability.md"
	@echo "make accuracy  the shared cases (CASES=DIR VENVS=DIR), written to docs/results/accuracy.md"
	@echo "make coverage  real programs: operators covered, bit-equality, graphs; written to docs/results/coverage.md"
	@echo "make mutants   random mutants of library code (MUTANTS=options), the truth known by construction"
	@echo "make docs      docs/ as a site in build/site; a dead link fails"
	@echo "make results   the documents' tables from bench/results/*.json; runs no program"
	@echo "make transcripts  runs the guide's commands, and writes what they print into its pages"
	@echo "make wheel     a manylinux wheel in dist/ that needs no package of the system"
	@echo "make release   sdist and wheel in dist/release, with every check (TAG=v0.1.0)"
	@echo "make format    clang-format on src/ and tests/"
	@echo "make clean     removes build/ and dist/, keeps .venv"

setup:
	@scripts/setup.sh

tool:
	@scripts/setup.sh tool

demo: tool
	@scripts/demo.sh

test: setup
	@scripts/test.sh

test-all: setup
	@scripts/test.sh --all

# TORTURE: options of bench/torture.py, such as "--scale 0.1 --minutes 2".
torture: setup
	@.venv/bin/python bench/torture.py --json bench/results/torture.json $(TORTURE)
	@.venv/bin/python bench/results.py

CASES ?= ../shared/cases
VENVS ?= build/venvs
accuracy: setup
	@.venv/bin/python bench/accuracy.py --cases $(CASES) --venvs $(VENVS) --json bench/results/accuracy.json
	@.venv/bin/python bench/results.py

COVERAGE_VENV ?= build/venv-coverage
coverage: setup
	@bench/coverage_env.sh $(COVERAGE_VENV)
	@.venv/bin/python bench/coverage.py --venv $(COVERAGE_VENV) --json bench/results/coverage.json
	@.venv/bin/python bench/results.py

# MUTANTS: options of bench/mutants.py, such as "--seed 101 --count 300 --controls 100 --json bench/results/mutants-101.json".
MUTANTS_VENV ?= build/venv-mutants
mutants: setup
	@bench/mutants_env.sh $(MUTANTS_VENV)
	@.venv/bin/python bench/mutants.py --venv $(MUTANTS_VENV) $(MUTANTS)

# The site needs neither the build nor torch.
DOCS_PYTHON ?= python3
build/venv-docs/.ready: scripts/docs-requirements.txt
	@$(DOCS_PYTHON) -m venv build/venv-docs
	@build/venv-docs/bin/pip install -q --disable-pip-version-check -r $<
	@touch $@

docs: build/venv-docs/.ready
	@NO_MKDOCS_2_WARNING=1 build/venv-docs/bin/mkdocs build --quiet --strict
	@echo "build/site/index.html"

transcripts: setup
	@.venv/bin/python scripts/transcripts.py docs/guide/tutorial.md docs/guide/record-once.md docs/guide/bisect.md

results:
	@.venv/bin/python bench/results.py

wheel: setup
	@scripts/wheel.sh

# TAG: the version's tag where this commit does not carry it yet, such as TAG=v0.1.0.
release: setup
	@scripts/release.sh $(if $(TAG),--tag $(TAG))

CLANG_FORMAT ?= $(shell command -v clang-format-19 || echo clang-format)
format:
	@$(CLANG_FORMAT) -i $(shell git ls-files 'src/*.cc' 'src/*.h' 'src/*.cu' 'tests/*.cc' 'tests/*.h')

clean:
	@rm -rf build dist
