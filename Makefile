# The commands that people use. `make help` lists them.

CARGO ?= cargo
# The build of scx's libraries asks for it as well. Expanded when a recipe runs,
# by when scripts/setup-host has installed it.
export BPF_CLANG ?= $(shell scripts/find-clang 2>/dev/null)
# The variables of `make bench` are described in scripts/bench; given on make's
# command line or in the environment, they reach it by themselves.

# The version that `make audit` installs where there is none.
CARGO_DENY := 0.20.2

.DEFAULT_GOAL := build
.PHONY: help build demo test test-unit test-vm test-full matrix stress bench peers paper platforms microbench lint audit install uninstall clean distclean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## the scheduler, the benchmark and the simulation (installs what is missing, as root)
	@scripts/setup-host build
	cd userspace && $(CARGO) build --release --locked --workspace

demo: build ## a FaaS workload under EEVDF and under scx_sfs, in a VM: a table and a report
	@scripts/setup-host vm
	@SCHEDULERS="eevdf scx_sfs" OUT=out/demo scripts/bench

test: build test-unit ## everything: units, tools, and the scheduler in a live kernel
	@scripts/setup-host vm
	vm/test.sh
	tests/run --again

test-unit: ## only what needs no virtual machine
	@scripts/setup-host build test
	cd userspace && $(CARGO) test --release --locked --workspace
	scripts/test.sh
	scripts/test-bench
	packaging/test.sh

test-vm: build ## the scheduler in a live kernel; CASE="name ..." for some cases only
	@scripts/setup-host vm
	tests/run $(CASE)

test-full: test matrix stress ## everything, on every kernel and under stress: hours

matrix: build ## the behaviour suite on each kernel, some numbers of CPUs, real parallelism: a table (scripts/matrix)
	@scripts/setup-host vm
	@scripts/matrix $(ON)

stress: build ## stress-ng's mixes, 200 cycles of loading and 200 kills in a VM; MIX="fork ..." for some
	@scripts/setup-host vm stress
	tests/stress $(MIX)

bench: build ## any schedulers on any workload; variables: see scripts/bench
	@scripts/setup-host vm
	@scripts/bench

peers: ## the sched_ext schedulers to compare with, for make bench; NAME="scx_flash ..." for some only
	@scripts/setup-host build
	@scripts/peers $(NAME)

paper: build ## the papers' figures, measured here; FIG="6 7" for some, N=2000 invocations (docs/results.md)
	@scripts/setup-host vm
	@userspace/target/release/sfs_paper run

platforms: build ## real runtimes in a VM: the Functions Framework and AWS Lambda's; settings: vm/platforms/lambda --help
	@scripts/setup-host vm platforms
	@vm/platforms/functions-framework
	@vm/platforms/lambda

microbench: ## the speed of the policy, hints, the benchmark and the simulation (criterion)
	cd userspace && $(CARGO) bench --locked -p sfs_policy -p sfs_hint -p faasbench -p sfs_sim

lint: ## formatting, clippy and shellcheck, warnings as errors
	@scripts/setup-host build test
	cd userspace && $(CARGO) fmt --all --check
	cd userspace && $(CARGO) clippy --release --locked --workspace --all-targets -- -D warnings
	scripts/shellcheck

audit: ## what the programs depend on: licences, sources, advisories (installs cargo-deny); CHECK="licenses bans sources" without network
	@command -v cargo-deny >/dev/null || $(CARGO) install --locked --version $(CARGO_DENY) cargo-deny
	cd userspace && cargo-deny --locked --workspace check $(CHECK)

install: ## program, hardened systemd unit, defaults (PREFIX, DESTDIR, see packaging/README.md)
	packaging/install.sh install

uninstall: ## take them away again
	packaging/install.sh uninstall

clean: ## remove what was built and measured
	rm -rf userspace/target out

distclean: clean ## remove the downloaded kernels and QEMU as well
	rm -rf .cache
