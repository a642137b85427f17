# The commands that people use. `make help` lists them.

export CARGO ?= cargo
# Without the Rust that rust-toolchain.toml names, where rustup cannot fetch it, rustup's
# stable one will do: scripts/setup-host checks its version. Releases are not built so.
ifeq ($(RUSTUP_TOOLCHAIN),)
ifneq ($(shell $(CARGO) --version >/dev/null 2>&1 || RUSTUP_TOOLCHAIN=stable $(CARGO) --version 2>/dev/null),)
export RUSTUP_TOOLCHAIN := stable
$(info not with the Rust that rust-toolchain.toml names, which is not here, but with rustup's stable one)
endif
endif
# The build of scx's libraries asks for it as well. Make expands it once for each target,
# before the first line of its recipe: what installs clang is therefore a target of its
# own, `setup`, on which everything that compiles depends.
ifeq ($(BPF_CLANG),)
BPF_CLANG = $(shell scripts/find-clang 2>/dev/null)
endif
export BPF_CLANG
# What runs the measurements. The variables of `make bench` are those of `sfs_lab bench
# --help`; given on make's command line or in the environment, they reach it by themselves.
LAB := userspace/target/release/sfs_lab
# What writes licences and bills of materials beside the programs, and checks a commit.
RELEASE := userspace/target/release/sfs_release --workspace userspace
# The crates of a comparison.
DEMO := scx_sfs faasbench sfs_lab sfs_sim sfs_waste
# What runs variants of the kernel half in the model.
VARIANTS := userspace/target/release/sfs_variants

# The version that `make audit` installs where there is none.
CARGO_DENY := 0.20.2

# What a command needs of the host beyond what the build does (see scripts/setup-host).
# All that the commands given to make need is made sure of at once, before anything else.
SETS_demo := vm
SETS_test := test variants vm
SETS_test-unit := test variants
SETS_test-vm := vm
SETS_test-fresh := fresh
SETS_test-service := vm fresh
SETS_test-metrics := vm
SETS_test-package := vm fresh
SETS_test-full := test variants vm stress fresh
SETS_matrix := vm
SETS_overhead := vm
SETS_stress := vm stress
SETS_bench := vm
SETS_paper := vm
SETS_parity := vm
SETS_league := vm
SETS_wild := vm
SETS_baselines := vm
SETS_sensitivity := vm
SETS_platforms := vm platforms
SETS_coverage := variants
SETS_sanitize := variants
SETS_mutants := variants
SETS_lint := test
SETS := $(sort $(foreach goal,$(MAKECMDGOALS),$(SETS_$(goal))))

.DEFAULT_GOAL := build
.PHONY: help setup variants build demo test test-unit test-vm test-fresh test-service test-package test-metrics test-full matrix overhead policies stress bench peers parity league wild baselines sensitivity paper platforms simulate scale coverage sanitize past mutants microbench book lint audit reproducible deb dist install uninstall clean distclean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup:
	@scripts/setup-host build $(SETS)

build: setup ## the scheduler, the benchmark and the simulation (installs what is missing, as root)
	cd userspace && $(CARGO) build --release --locked --workspace
	@$(RELEASE) licences --write
	@$(RELEASE) bom
	@userspace/target/release/scx_sfs generate userspace/target/release/share

# Only what the demo needs: a newcomer waits for the first table. `make build` compiles
# none of it again (sfs_scripts/tests/features.rs).
demo: setup ## a FaaS workload under EEVDF and under scx_sfs, in a VM: a table and a report
	cd userspace && $(CARGO) build --release --locked $(addprefix -p ,$(DEMO))
	@SCHEDULERS="eevdf scx_sfs" OUT=out/demo $(LAB) bench

test: build test-unit ## all tests: units, tools, and the scheduler in a live kernel; LONG=1/3 for a third of the longest cases (tests/README.md)
	scripts/cargo-test --release --locked --workspace --test vm
	tests/run $(if $(LONG),--long $(LONG))

test-unit: setup ## the tests that need no virtual machine
	scripts/cargo-test --no-fail-fast --release --locked --workspace

test-vm: build ## the scheduler in a live kernel; CASE="name ..." for some cases only
	tests/run $(CASE)

test-fresh: build ## the README's commands on bare Debian machines; ON="12" or "13" for one release (userspace/target/release/sfs_release fresh --help)
	@$(RELEASE) fresh $(ON)

test-service: build ## the service under a live systemd in a VM, minutes; PART="quick", "hotplug" or "stall" for some of it (userspace/target/release/sfs_service test --help)
	@userspace/target/release/sfs_service test $(PART)

test-metrics: setup ## the metrics, alerts and dashboard in Debian's Prometheus, which it fetches (docs/monitoring.md)
	@vm/fetch-prometheus >/dev/null
	scripts/cargo-test --release --locked -p sfs_metrics

test-package: build ## the Debian package on a fresh Debian 13 in a VM: installed, used, upgraded, removed; the transcript is out/package/transcript.txt
	@vm/fetch-prometheus >/dev/null
	@userspace/target/release/sfs_service test package
	SCX_SFS_LIVE_METRICS=out/package scripts/cargo-test --release --locked -p sfs_metrics --test prometheus
	TRY_SCX_LOADER=1 scripts/cargo-test --release --locked -p sfs_release --test loader_patch

test-full: build ## all tests there are: units, kernels, machines, search, stress, fresh machines; a day, in parts whose results are kept; PART="suite/6.18:64*" MINUTES=60 (userspace/target/release/sfs_lab full --help)
	@$(LAB) full $(PART)

matrix: build ## the behaviour suite on each kernel, on several numbers of CPUs, and with real parallelism: a table; ON="6.18:2 ..." for some (userspace/target/release/sfs_lab matrix --help)
	@$(LAB) matrix $(ON)

overhead: build ## the costs of scx_sfs itself, in a VM: tables; OF="queue 1 100" (userspace/target/release/sfs_lab overhead --help)
	@$(LAB) overhead $(OF)

policies: build ## the candidates for --policy, simulated on many workloads: the tables of docs/policy.md; PART="workloads" for some
	@$(LAB) policies $(PART)

stress: build ## stress-ng's mixes, 200 cycles of loading and 200 kills in a VM; MIX="fork ..." for some (userspace/target/release/sfs_suite stress --help)
	@userspace/target/release/sfs_suite stress $(MIX)

bench: build ## any schedulers on any workload; variables: userspace/target/release/sfs_lab bench --help
	@$(LAB) bench

peers: build ## the sched_ext schedulers to compare with, for make bench; NAME="scx_flash ..." for some only (userspace/target/release/sfs_lab peers --help)
	@$(LAB) peers $(NAME)

parity: build ## programs that are not functions, under EEVDF and under scx_sfs: a table; ROWS="--all" for a night, or "handoffs/* ..."; MACHINES=4 for how far rows vary (docs/parity.md; userspace/target/release/sfs_lab parity --help)
	@$(LAB) parity $(ROWS)

league: build ## many workloads under all schedulers, and where scx_sfs is not the best; QUICK=1 for a dozen, WORKLOADS="azure* ..." for some (docs/league.md; userspace/target/release/sfs_league --help)
	@userspace/target/release/sfs_league $(WORKLOADS)

wild: build ## workloads that nobody has chosen, each drawn from its seed, under EEVDF and scx_sfs: the worst first; SEED=, SEEDS= (docs/statistics.md; userspace/target/release/sfs_wild --help)
	@userspace/target/release/sfs_wild

baselines: build ## what a sceptic asks for: CFS, EEVDF's settings, daemons that renice, the original SFS: tables; ROWS="renice idle" for some (docs/baselines.md; userspace/target/release/sfs_baselines --help)
	@userspace/target/release/sfs_baselines $(foreach row,$(ROWS),'$(row)')

sensitivity: build ## what would survive on hardware: a refill after each switch, a kernel that costs more: tables; SCHEDULERS="eevdf scx_sfs" for some, CALIBRATE=1 for what small things cost (docs/sensitivity.md; userspace/target/release/sfs_sensitivity --help)
	@userspace/target/release/sfs_sensitivity

paper: build ## the papers' figures, measured here; FIG="6 7" for some, N=2000 invocations (docs/results.md)
	@userspace/target/release/sfs_paper run

platforms: build ## real runtimes in a VM: the Functions Framework and AWS Lambda's; settings: userspace/target/release/sfs_platforms lambda --help
	@userspace/target/release/sfs_platforms functions-framework
	@userspace/target/release/sfs_platforms lambda

simulate: build ## search in a model of the kernel for seeds that break the kernel half; SECONDS=60 SEED=1; RULES=1 compares each callback with the rules of the policy as well (tests/README.md)
	@userspace/target/release/sfs_model search --known tests/findings

scale: build ## what the kernel half costs on 4 to 512 CPUs, counted from its own code in the model: tables (docs/scale.md; userspace/target/release/sfs_model scale --help)
	@$(LAB) scale

coverage: variants ## what seeds reach of the kernel half in the model, by file; SEEDS=300; WRITE=1 writes the table of docs/model.md
	@$(VARIANTS) coverage

sanitize: variants ## seeds in the model with clang's sanitizers of addresses and of undefined behaviour; SEEDS=300
	@$(VARIANTS) sanitize

past: variants ## seeds with the kernel half of commit 989571b, and which of its known defects they show; SEEDS=2500; WRITE=1 writes the table of docs/model.md
	@$(VARIANTS) past

mutants: variants ## mutants of the kernel half in the model, and which of them no seed finds out; N=100 SEED=1 (docs/model.md)
	@$(VARIANTS) mutants

variants: setup
	cd userspace && $(CARGO) build --quiet --release --locked -p sfs_variants

microbench: setup ## the speed of the policy, hints, the benchmark and the simulation (criterion)
	cd userspace && $(CARGO) bench --locked -p sfs_policy -p sfs_hint -p faas_workload -p sfs_sim

book: setup ## the documentation as a book, in out/book, with all links checked (docs/SUMMARY.md)
	cd userspace && $(CARGO) build --quiet --release --locked -p sfs_book
	@userspace/target/release/sfs_book build

lint: setup ## formatting, clippy, shellcheck and the links of the documentation and of the book, warnings as errors
	cd userspace && $(CARGO) fmt --all --check
	cd userspace && $(CARGO) clippy --release --locked --workspace --all-targets -- -D warnings
	scripts/check-sources
	cd userspace && $(CARGO) test --quiet --release --locked --workspace --test links

audit: setup ## licences, sources and advisories of the dependencies (installs cargo-deny); CHECK="licenses bans sources" without network
	@command -v cargo-deny >/dev/null || $(CARGO) install --locked --version $(CARGO_DENY) cargo-deny
	@scripts/audit $(CHECK)

reproducible: build ## build the commit in two folders, and compare the programs and BPF objects
	@$(RELEASE) reproducible

deb: build ## a Debian package, in out/ (packaging/README.md)
	@$(RELEASE) deb

package-crates: build ## the crates that cargo install scx_sfs needs, in out/crates, built from the packaged files alone
	@$(RELEASE) crates

dist: build ## a release of the commit in out/: sources, bills of materials, licences, checksums
	@$(RELEASE) dist

install: ## program, hardened systemd unit, defaults (PREFIX, DESTDIR, see packaging/README.md)
	packaging/install.sh install

uninstall: ## remove the installed files
	packaging/install.sh uninstall

clean: ## remove builds and measurements
	rm -rf userspace/target out

distclean: clean ## remove the downloaded kernels and QEMU as well
	rm -rf .cache
