# The front door to taeda: `make` builds it, `make test` tests it, `make help` lists the rest.
# Everything is idempotent; the first run of any target installs what is missing.
BUILD := build
BUILD_ASAN := build-asan
BUILD_TSAN := build-tsan
JOBS ?= $(shell nproc)
PY := .venv/bin/python
READY := .venv/.ready
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export PYTHONUTF8 := 1

CONFIGURE = cmake -G Ninja -S . -DCMAKE_PREFIX_PATH=$(CURDIR)/.venv \
  -DPython_EXECUTABLE=$(CURDIR)/$(PY)

.DEFAULT_GOAL := build
.PHONY: build setup test cuda-check cuda-kernels cuda-wheel cuda-asan cuda-tsan demo lint format bench programs suites fuzz parity fuzz-readers fuzz-allocator asan asan-core tsan tsan-core wheel wheels docs docs-coverage docs-errors clean help

$(READY): tools/bootstrap.sh tools/requirements.txt tools/requirements-cuda.txt
	@tools/bootstrap.sh

setup: ## install what building and testing need (apt packages, Python packages into .venv)
	@tools/bootstrap.sh

$(BUILD)/build.ninja: | $(READY)
	$(CONFIGURE) -B $(BUILD) -Wno-dev

build: $(READY) $(BUILD)/build.ninja ## build the library and the Python package
	@ninja -C $(BUILD) -j $(JOBS)

test: build ## run all tests; the last line reads "N passed, N failed"
	@ninja -C $(BUILD) -j $(JOBS) taeda_tests fuzzers taeda_emulator taeda_emulator_overrun taeda_emulator_races
	@$(PY) tools/run_tests.py --build $(BUILD)

demo: build ## train a convolutional network on Fashion-MNIST and write a report page
	@$(PY) examples/fashion_mnist.py
	@$(PY) examples/compare.py

lint: build ## formatting, types, layering, the operator table
	@$(PY) tools/lint.py --build $(BUILD)

format: $(READY) ## apply clang-format and ruff
	@$(PY) tools/lint.py --fix

bench: build ## compare with PyTorch; writes docs/benchmarks.md
	@$(PY) bench/run.py

.venv/.cuda: tools/requirements-cuda.txt | $(READY)
	@.venv/bin/pip --disable-pip-version-check -q install -r $<
	@cp $< $@
	@rm -f .venv/.no-cuda

cuda-check: .venv/.cuda ## compile all kernels for CUDA devices, for every architecture, and check what came of it
	@$(PY) tools/cuda_check.py --jobs $(JOBS)

KERNELS := .cache/taeda_kernels.bin
$(KERNELS): .venv/.cuda tools/pack_kernels.py tools/cuda_units.py tools/nvrtc.py $(shell find ops src/kernels/cuda/text src/kernels/pointwise src/kernels/cpu/simd -type f) \
  $(wildcard src/kernels/*.h) src/kernels/cpu/pointwise/divide.h src/device/fault_code.h
	@mkdir -p $(@D)
	@$(PY) tools/pack_kernels.py $@ --jobs $(JOBS)

cuda-kernels: build $(KERNELS) ## compile the kernels for CUDA devices, into a file beside the built library
	@cp $(KERNELS) $(BUILD)/lib/

cuda-wheel: $(KERNELS) ## build dist/taeda_cuda-*.whl: the kernels compiled for each architecture of CUDA devices
	@$(PY) tools/make_cuda_wheel.py --jobs $(JOBS)

cuda-asan: build ## the tests of kernels for CUDA on the CPU, under the address and undefined-behaviour sanitizers
	@ninja -C $(BUILD) -j $(JOBS) taeda_emulator_asan
	@$(PY) tools/run_tests.py --build $(BUILD) --emulator address

N ?= 100000
SEED ?= 0
fuzz: build ## odd arguments to everything public: N=1000000 calls, SEED=1
	@PYTHONPATH=$(BUILD)/python $(PY) -m tests.fuzz --calls $(N) --seed $(SEED)

parity: build ## PyTorch's own samples of all operators, modules and optimizers, beside PyTorch: N=200000 calls
	@PYTHONPATH=$(CURDIR)/$(BUILD)/python $(PY) -m tests.parity --calls $(N) --seed $(SEED) \
	  --processes $(JOBS) --write tools/data/parity.json

fuzz-readers: build ## damaged files to every reader, in Python and in C++: N=1000000 files, SEED=1
	@ninja -C $(BUILD) -j $(JOBS) fuzzers
	@PYTHONPATH=$(BUILD)/python $(PY) -m tests.fuzz.readers --build $(BUILD) --files $(N) --seed $(SEED)

$(BUILD_ASAN)/build.ninja: | $(READY)
	$(CONFIGURE) -B $(BUILD_ASAN) -Wno-dev -DTAEDA_SANITIZE=address,undefined

asan: $(READY) $(BUILD_ASAN)/build.ninja ## run the tests under the address and undefined-behaviour sanitizers
	@ninja -C $(BUILD_ASAN) -j $(JOBS) all taeda_tests fuzzers taeda_emulator
	@$(PY) tools/run_tests.py --build $(BUILD_ASAN) --sanitize address

$(BUILD_TSAN)/build.ninja: | $(READY)
	$(CONFIGURE) -B $(BUILD_TSAN) -Wno-dev -DTAEDA_SANITIZE=thread

tsan: $(READY) $(BUILD_TSAN)/build.ninja ## run the tests of threads under the thread sanitizer
	@ninja -C $(BUILD_TSAN) -j $(JOBS) all taeda_tests fuzzers
	@$(PY) tools/run_tests.py --build $(BUILD_TSAN) --sanitize thread

asan-core: $(READY) $(BUILD_ASAN)/build.ninja ## the same for the tests of src/base, src/core and of data workers, in minutes
	@ninja -C $(BUILD_ASAN) -j $(JOBS) taeda_core_tests
	@$(PY) tools/run_tests.py --build $(BUILD_ASAN) --sanitize address --only core

OPERATIONS ?= 1000000
fuzz-allocator: $(READY) $(BUILD_ASAN)/build.ninja ## random operations on the allocator of devices against a model, with sanitizers
	@ninja -C $(BUILD_ASAN) -j $(JOBS) taeda_core_tests
	@TAEDA_ALLOCATOR_FUZZ=$(OPERATIONS) $(BUILD_ASAN)/taeda_core_tests --gtest_filter='AllocatorFuzz.*'

tsan-core: $(READY) $(BUILD_TSAN)/build.ninja ## these under the thread sanitizer
	@ninja -C $(BUILD_TSAN) -j $(JOBS) taeda_core_tests
	@$(PY) tools/run_tests.py --build $(BUILD_TSAN) --sanitize thread --only core

programs: build ## run programs on public packages beside PyTorch; writes docs/programs.md
	@$(PY) bench/compare_programs.py
	@$(PY) bench/compare_repositories.py

suites: build ## run libraries' own test suites beside PyTorch; writes docs/suites.md
	@$(PY) bench/compare_suites.py

cuda-tsan: build ## kernels whose threads work together, on the CPU, under the thread sanitizer
	@ninja -C $(BUILD) -j $(JOBS) taeda_emulator_races taeda_emulator_tsan
	@PYTHONPATH=$(BUILD)/python $(PY) -m pytest -q tests/device/test_emulator.py

wheel: $(READY) $(KERNELS) ## build dist/taeda-*.whl and try it in an empty virtual environment
	@$(PY) tools/make_wheel.py

.venv-docs/.ready: docs/requirements.txt | $(READY)
	@$(PY) -m venv .venv-docs
	@.venv-docs/bin/pip --disable-pip-version-check -q install -r docs/requirements.txt
	@touch $@

wheels: $(READY) $(KERNELS) ## the same for each CPython 3.11 to 3.14 that is installed
	@$(PY) tools/make_wheel.py --all

docs: build .venv-docs/.ready ## the documentation as a site in build/site, with search
	@$(PY) tools/make_docs.py

docs-coverage: build ## docs/coverage.md and the README's figures, from what was built
	@$(PY) tools/make_docs.py --refresh --stage

docs-errors: build ## docs/errors.md: what typical mistakes say, beside PyTorch's words
	@PYTHONPATH=$(BUILD)/python $(PY) -m tests.errors

clean: ## remove everything that was built (.venv stays)
	rm -rf $(BUILD) $(BUILD_ASAN) $(BUILD_TSAN) dist runs

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { \
	  line = sprintf("make %-14s", $$1); count = split($$2, words, " "); \
	  for (i = 1; i <= count; i++) { \
	    if (length(line) + 1 + length(words[i]) > 80) { print line; line = sprintf("%19s", "") } \
	    line = line " " words[i] } \
	  print line }' Makefile
