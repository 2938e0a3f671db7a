# The door to the build; CMakeLists.txt does the work. `make help` lists what is here.
PREFIX ?= /usr/local
SAN ?=
CUDA ?= AUTO
BUILD_TYPE ?= Release
JOBS ?= $(shell nproc)
SETUP ?= on
BUILD ?= build$(if $(SAN),-$(SAN))
TESTS ?=
CTEST_FLAGS ?=
CMAKE_FLAGS ?=
FUZZ_SECONDS ?= 15

GENERATOR = $(if $(shell command -v ninja 2>/dev/null),-G Ninja,-G "Unix Makefiles")
CONFIGURE = cmake -S . -B $(BUILD) $(if $(wildcard $(BUILD)/CMakeCache.txt),,$(GENERATOR)) \
  -DCMAKE_BUILD_TYPE=$(BUILD_TYPE) -DFCCL_SAN=$(SAN) -DFCCL_CUDA=$(CUDA) \
  $(if $(CUDA_ARCHS),"-DFCCL_CUDA_ARCHS=$(CUDA_ARCHS)") $(CMAKE_FLAGS)
BUILD_TARGETS = cmake --build $(BUILD) --parallel $(JOBS) --target
FORMATTED = git ls-files -co --exclude-standard 'include/*.h' 'src/*.h' 'src/*.cc' 'src/*.cu' 'device/*.h' \
  'device/*.cc' 'device/*.cu' 'device/*.hip' 'plugins/*.h' 'plugins/*.cc' 'tools/*.h' 'tools/*.cc' 'test/*.h' 'test/*.cc' 'test/*.cu' 'test/*.c'
CLANG_FORMAT ?= $(shell command -v clang-format-14 || echo clang-format)
DEMO = --backend cpu --np 4 --op fused --hidden 4096,7168 --tokens 1,4,16,64,256 -d bf16 -n 20 -w 5

# Sanitizers report at the first finding; promised bounds are ten times wider there.
ifneq ($(SAN),)
export FCCL_TEST_SLOW_FACTOR ?= 10
export TSAN_OPTIONS ?= halt_on_error=1:second_deadlock_stack=1
export ASAN_OPTIONS ?= detect_stack_use_after_return=1:strict_string_checks=1
export UBSAN_OPTIONS ?= print_stacktrace=1:halt_on_error=1
endif

.PHONY: all configure demo test fuzz install cuda gpu-bundle bench format format-check lint tidy setup clean help
.DEFAULT_GOAL := all

all: configure ## build the library, the tools and the backend modules that this machine can build
	$(BUILD_TARGETS) product

demo: CUDA = OFF
demo: configure ## build the CPU backend, run the fused operation on 4 ranks, print a table
	$(BUILD_TARGETS) fccl fccl_perf
	$(BUILD)/bin/fccl_perf $(DEMO)

test: configure ## build and run all tests; TESTS=regex picks, SAN=thread|address|undefined sanitizes
	$(BUILD_TARGETS) all
	ctest --test-dir $(BUILD) --output-on-failure --no-tests=error --no-label-summary -j $(JOBS) $(if $(TESTS),-R "$(TESTS)") $(CTEST_FLAGS)

fuzz: setup ## run each fuzzer of test/fuzz for FUZZ_SECONDS (needs clang)
	CC=clang-14 CXX=clang++-14 cmake -S . -B build-fuzz $(if $(wildcard build-fuzz/CMakeCache.txt),,$(GENERATOR)) \
	  -DFCCL_FUZZ=ON -DFCCL_FUZZ_SECONDS=$(FUZZ_SECONDS)
	cmake --build build-fuzz --parallel $(JOBS)
	ctest --test-dir build-fuzz --output-on-failure --no-tests=error -j $(JOBS)

install: all ## install to PREFIX (DESTDIR is honoured)
	cmake --install $(BUILD) --prefix $(abspath $(PREFIX))

cuda: CUDA = ON
cuda: configure ## build the CUDA backend module; CUDA_ARCHS="80-real;90-real;..." picks
	$(BUILD_TARGETS) fccl_cuda

gpu-bundle: ## pack what a GPU machine needs to run the tests there
	tools/gpu_bundle.sh

bench: all ## compare with gloo and OpenMPI (installs them)
	SETUP=$(SETUP) tools/setup.sh bench
	tools/bench/run

configure: setup
	@$(CONFIGURE)

setup:
	@SETUP=$(SETUP) tools/setup.sh

format: ## rewrite the sources in the project's style
	@$(FORMATTED) | xargs -r $(CLANG_FORMAT) -i

format-check: ## complain about what `make format` would change
	@$(FORMATTED) | xargs -r $(CLANG_FORMAT) --dry-run --Werror

lint: ## the grep laws, the include table, headers that compile alone
	python3 test/lint/rules.py

tidy: configure ## clang-tidy over src/ (slow)
	git ls-files 'src/*.cc' | grep -v _cuda | grep -v _hip | xargs -r -n 1 -P $(JOBS) clang-tidy -p $(BUILD) --quiet

clean: ## remove the build folders
	rm -rf build build-thread build-address build-undefined build-fuzz gpu-bundle

help: ## this list
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/^([a-z-]+):[^#]*## /  make \1\t/' | expand -t 22
