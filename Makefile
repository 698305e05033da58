# make demo   set everything up, emulate a Raspberry Pi Pico, let a language model tell a story, draw pictures
# make test   set everything up, run all tests, of the exhaustive ones a sample that rotates by commit; at most 20
#             minutes of processor time once all is installed and the firmware is built
# make test-long   all of the exhaustive tests: every line cut, every window; at most 50 minutes of processor time
# make mutants   put 200 random one-line faults into pools, requests, policies, admission and caches, one at a
#             time, and tell which no test finds (MUTANTS_ARGS="--seed 7 --count 50"; the seed is printed)
# make fuzz   give every reader of bytes, for ten minutes, bytes that nobody should have written
#             (FUZZ_ARGS="--seconds 60 --only snapshot")
# make lint   ruff, mypy, the lint of native code (why a rule is one: tools/lint_viper.py --explain all), and whether
#             the constants that index arrays are those of tools/fields.py --list, the kernels in assembler what
#             tools/kernelgen makes, their tables what tools/kernel_tables.py makes, what self-checks know of the
#             plain ones what those make, and imports in the order of tools/lint_structure.py --layers
# make test-train   install the extra `train` (jax) and run the tests that need it
# make clean  remove out/ and caches; `make distclean` removes the virtual environment too

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
WORKERS ?= auto
PYTEST_ARGS ?=
# The key of the sample; that of a run is printed, SAMPLE=KEY repeats it.
SAMPLE ?= commit

MUTANTS_ARGS ?=

FUZZ_ARGS ?=

.PHONY: demo test test-long test-train mutants fuzz lint venv clean distclean

demo: $(STAMP)
	@$(BIN)/kvlab demo $(if $(MODEL),--model "$(MODEL)")

# Installs the compiler and emulator of the 32-bit firmware where it may (root on Debian); else the tests that
# need them are skipped by name. The tests of a file share what they compute, so one worker runs them.
test test-long: PYTEST := $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile

test: $(STAMP)
	@$(BIN)/python -m firmware --install || true
	@$(PYTEST) --sample=$(SAMPLE) $(PYTEST_ARGS)

test-long: $(STAMP)
	@$(BIN)/python -m firmware --install || true
	@$(PYTEST) -m 'exhaustive and not train' $(PYTEST_ARGS)

test-train: $(STAMP)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,rp2040,train]'
	@$(BIN)/python -m pytest -q -m train host_tests/test_train.py

mutants: $(STAMP)
	@$(BIN)/python tools/mutants.py $(MUTANTS_ARGS)

fuzz: $(STAMP)
	@$(BIN)/python host_tests/fuzz.py $(FUZZ_ARGS)

lint: $(STAMP)
	@$(BIN)/ruff check .
	@$(BIN)/mypy tools/kvlab tools/commandline tools/lint_viper.py tools/viper_lint tools/mutants.py tools/mutation tools/fields.py tools/field_tables unix_port $(wildcard qemu_port tools/firmware)
	@$(BIN)/mypy --strict tools/kernelgen tools/generate_kernels.py tools/structure tools/lint_structure.py tools/answers.py tools/kernel_tables.py
	@$(BIN)/python tools/lint_viper.py mpy_kv boards
	@$(BIN)/python tools/fields.py
	@$(BIN)/python tools/generate_kernels.py
	@$(BIN)/python tools/answers.py
	@$(BIN)/python tools/kernel_tables.py
	@$(BIN)/python tools/lint_structure.py
	@$(BIN)/python tools/package_json.py --check

venv: $(STAMP)

# Re-used while it is newer than pyproject.toml. Made with --clear, so that a half-made one never survives.
$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "make: needs Python 3.10 or newer; name one with PYTHON=python3.12" >&2; exit 1; }
	@echo "Setting up $(VENV) ..."
	@$(PYTHON) -m venv --clear $(VENV) || $(PYTHON) -m virtualenv --clear $(VENV) || \
	  { rm -rf $(VENV); \
	    echo "make: cannot make a virtual environment; on Debian: apt-get install python3-venv" >&2; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,rp2040]'
	@touch $@

clean:
	rm -rf out build .pytest_cache .ruff_cache .mypy_cache .hypothesis *.egg-info
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

distclean: clean
	rm -rf $(VENV)
