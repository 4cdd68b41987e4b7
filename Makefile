# SPDX-License-Identifier: Apache-2.0

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --no-builtin-rules --no-print-directory
.DEFAULT_GOAL := help

GO ?= go
PREFIX ?= /usr/local
DESTDIR ?=
# Where install-hook puts the hook: where podman and CRI-O look unless told otherwise,
# whatever the PREFIX, since neither looks below /usr/local.
HOOKSDIR ?= /usr/share/containers/oci/hooks.d
UNITDIR ?= $(PREFIX)/lib/systemd/system
# Debian's zsh looks in vendor-completions below /usr, and here below /usr/local.
ZSHDIR ?= $(PREFIX)/share/zsh/site-functions
# The date of the manual pages, of the packages and of what is in them.
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || date +%s)
VERSION ?= $(shell git describe --always --dirty 2>/dev/null || echo unknown)
TESTFLAGS ?=
BENCH ?= .
FUZZTIME ?= 10m
TORTURE ?= full
ATTACK ?= .

# What this machine must be able to do: a test that would skip for want of one
# of these fails. Without root the tests that need it skip, and say so. test and check
# promise it only in CI, and where PROMISE is given by name.
ifneq ($(origin PROMISE)$(CI),undefined)
PROMISED = $(PROMISE)
endif
ifeq ($(shell id -u),0)
PROMISE ?= root,ext4,xfs,btrfs,tmpfs,fuse,strace,seccomp,bash,gcc,getfattr
endif

GOLANGCI := v2.15.0
LINTER := .tools/golangci-lint-$(GOLANGCI)
NFPM_VERSION := v2.45.2
NFPM := .tools/nfpm-$(NFPM_VERSION)
GOTESTSUM_VERSION := v1.13.0
GOTESTSUM := .tools/gotestsum-$(GOTESTSUM_VERSION)
CYCLONEDX_VERSION := v1.10.0
CYCLONEDX := .tools/cyclonedx-gomod-$(CYCLONEDX_VERSION)
MODULES := bench nri test/system
SCRIPTS := .ci/run test/system/cluster/guest/node test/system/selinuxvm/guest/start $(shell find deploy relabel test bench -name '*.sh' 2>/dev/null)

# Debian packages, by what needs them. The race detector needs a C library.
PKG_DEMO := attr e2fsprogs mount util-linux
PKG_TEST := $(PKG_DEMO) btrfs-progs fuse3 gcc libc6-dev libselinux1-dev patch policycoreutils procps strace xfsprogs
PKG_RUNTIMES := $(PKG_TEST) conmon crun podman runc
PKG_CONTEXTS := dpkg gcc libc6-dev libselinux1-dev policycoreutils
PKG_SELINUX := debian-archive-keyring debootstrap dpkg e2fsprogs git gpgv qemu-system-x86 xfsprogs xz-utils
PKG_BENCH := $(PKG_TEST) git
PKG_LINT := aspell aspell-en shellcheck
PKG_FRESH := debootstrap
PKG_DEPLOY := systemd util-linux
PKG_IMAGE := buildah
PKG_PACKAGES := $(PKG_IMAGE) attr debootstrap lintian rpm systemd-container

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: deps deps-demo deps-image deps-test deps-contexts deps-runtimes deps-selinux deps-cluster deps-bench deps-lint deps-fresh deps-deploy deps-packages
deps: $(GOTESTSUM) deps-test deps-contexts deps-runtimes deps-selinux deps-bench deps-lint deps-fresh deps-deploy deps-packages ## install what all targets need: Debian packages, the linter in .tools
deps-demo:
	@test/deps.sh $(PKG_DEMO)
deps-test:
	@test/deps.sh $(PKG_TEST)
deps-contexts:
	@test/deps.sh $(PKG_CONTEXTS)
deps-runtimes:
	@test/deps.sh $(PKG_RUNTIMES)
deps-selinux:
	@test/deps.sh $(PKG_SELINUX)
deps-cluster: deps-selinux
deps-bench:
	@test/deps.sh $(PKG_BENCH)
deps-lint: $(LINTER)
	@test/deps.sh $(PKG_LINT)
deps-fresh:
	@test/deps.sh $(PKG_FRESH)
deps-deploy:
	@test/deps.sh $(PKG_DEPLOY)
deps-image:
	@test/deps.sh $(PKG_IMAGE)
deps-packages: $(NFPM)
	@test/deps.sh $(PKG_PACKAGES)

$(LINTER):
	@echo "deps: building golangci-lint $(GOLANGCI) into .tools (minutes, once)"
	@mkdir -p $@.new
	@GOFLAGS= GOBIN=$(CURDIR)/$@.new $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI)
	@mv $@.new/golangci-lint $@
	@rmdir $@.new

$(NFPM):
	@echo "deps: building nfpm $(NFPM_VERSION) into .tools (a minute, once)"
	@mkdir -p $@.new
	@GOFLAGS= GOBIN=$(CURDIR)/$@.new $(GO) install github.com/goreleaser/nfpm/v2/cmd/nfpm@$(NFPM_VERSION)
	@mv $@.new/nfpm $@
	@rmdir $@.new

$(GOTESTSUM):
	@echo "deps: building gotestsum $(GOTESTSUM_VERSION) into .tools (once)"
	@mkdir -p $@.new
	@GOFLAGS= GOBIN=$(CURDIR)/$@.new $(GO) install gotest.tools/gotestsum@$(GOTESTSUM_VERSION)
	@mv $@.new/gotestsum $@
	@rmdir $@.new

# Two steps of .ci/run may be here at once.
$(CYCLONEDX):
	@echo "deps: building cyclonedx-gomod $(CYCLONEDX_VERSION) into .tools (a minute, once)"
	@mkdir -p .tools
	@new=$$(mktemp -d .tools/new.XXXXXX) && GOFLAGS=-trimpath GOBIN=$(CURDIR)/$$new $(GO) install github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@$(CYCLONEDX_VERSION) && \
		mv -f $$new/cyclonedx-gomod $@ && rmdir $$new

.PHONY: build
build: ## build bin/fastlabel, static
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o bin/fastlabel ./cmd/fastlabel

.PHONY: install install-hook uninstall
install: build ## install the command below PREFIX (/usr/local), its pages, completions and unit (UNITDIR), within DESTDIR
	rm -rf bin/files && mkdir -p bin/files
	GOOS= GOARCH= CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-X main.version=$(VERSION)" -o bin/files/fastlabel ./cmd/fastlabel
	GOOS= GOARCH= CGO_ENABLED=0 $(GO) run ./deploy/man "$(CURDIR)/bin/files/fastlabel" "$(VERSION)" "$(CURDIR)/bin/files/man"
	gzip -9n bin/files/man/*
	install -D -m 755 bin/fastlabel "$(DESTDIR)$(PREFIX)/bin/fastlabel"
	install -D -m 644 -t "$(DESTDIR)$(PREFIX)/share/man/man1" bin/files/man/*
	bin/files/fastlabel completion bash | install -D -m 644 /dev/stdin "$(DESTDIR)$(PREFIX)/share/bash-completion/completions/fastlabel"
	bin/files/fastlabel completion zsh | install -D -m 644 /dev/stdin "$(DESTDIR)$(ZSHDIR)/_fastlabel"
	bin/files/fastlabel completion fish | install -D -m 644 /dev/stdin "$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/fastlabel.fish"
	sed 's|^ExecStart=/usr/bin/fastlabel |ExecStart="$(PREFIX)/bin/fastlabel" |' deploy/systemd/fastlabel@.service | \
		install -D -m 644 /dev/stdin "$(DESTDIR)$(UNITDIR)/fastlabel@.service"
# What the hook's file holds where the command is below PREFIX.
HOOK = sed 's|"/usr/bin/fastlabel"|"$(PREFIX)/bin/fastlabel"|' deploy/oci/fastlabel.json
install-hook: ## activate the hook for podman and CRI-O: in HOOKSDIR (/usr/share/containers/oci/hooks.d), within DESTDIR
	$(HOOK) | install -D -m 644 /dev/stdin "$(DESTDIR)$(HOOKSDIR)/fastlabel.json"
# The hook goes only if it is the one of this PREFIX.
uninstall: ## remove what install and install-hook installed, with the same PREFIX and DESTDIR
	rm -f "$(DESTDIR)$(PREFIX)/bin/fastlabel" "$(DESTDIR)$(PREFIX)/share/man/man1/fastlabel.1.gz" "$(DESTDIR)$(PREFIX)"/share/man/man1/fastlabel-*.1.gz
	rm -f "$(DESTDIR)$(PREFIX)/share/bash-completion/completions/fastlabel" "$(DESTDIR)$(ZSHDIR)/_fastlabel"
	rm -f "$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/fastlabel.fish" "$(DESTDIR)$(UNITDIR)/fastlabel@.service"
	if $(HOOK) | cmp -s - "$(DESTDIR)$(HOOKSDIR)/fastlabel.json"; then rm -f "$(DESTDIR)$(HOOKSDIR)/fastlabel.json"; fi

# Who answers for the packages. A release is refused without one.
export MAINTAINER ?= fastlabel maintainers <maintainers@fastlabel.invalid>
RELEASE ?= bin/release
.PHONY: release
release: deps-image $(NFPM) $(CYCLONEDX) ## make all of a release in bin/release (MAINTAINER="Name <address>"; RELEASE for another directory)
	deploy/release.sh "$(VERSION)" $(NFPM) $(CYCLONEDX) "$(RELEASE)"

IMAGE ?= bin/fastlabel-$(VERSION).oci.tar
.PHONY: image
image: deps-image $(CYCLONEDX) ## make the container image for amd64 and arm64: IMAGE, an OCI archive in bin
	deploy/image.sh fastlabel "$(VERSION)" $(CYCLONEDX) "$(IMAGE)"

.PHONY: packages test-packages
packages: $(NFPM) ## make debs and rpms in bin: of what install installs, and of the hook
	rm -rf bin/*.deb bin/*.rpm
	deploy/packages.sh "$(VERSION)" $(NFPM) bin
test-packages: deps-packages $(CYCLONEDX) ## make a release twice, install its packages and remove them again, in a Debian 12 in a directory (root)
	test/packages.sh

# What has goroutines to race. The tests that are left out there look at the built command,
# which has no detector, count what the detector adds to, or are TestEscape, whose
# attackers work by system calls.
RACE := ./relabel/... ./internal/... ./cmd/...
SLOW := ^(TestAllocations|TestCallsPer(Entry|Directory)|TestCreatedAtCommit|TestDocsRun|TestDropinCosts|TestErrnoTable|TestEscape|TestNothingElseOpened|TestOrderOf(Calls|Layers)|TestRightLooksAgain|TestSlowLook|TestSmallMounted|TestStart|TestSyncsForOthers|TestUndoPage|TestVisitOrder|TestWayByAnswers)$$
# The packages that ask testing.Short.
WHOLE := ./relabel
SUM = FASTLABEL_PROMISE=$(PROMISED) $(GOTESTSUM) -- -count=1

.PHONY: test test-short test-race check
test: ## install what the tests need, run them all in their short form, and under the race detector what has goroutines (3 min)
ifeq ($(shell id -u),0)
	@$(MAKE) deps-test
else
	@echo "test: NOT ROOT: what needs root, a mount or security.selinux is NOT run; run 'sudo make test' for all" >&2
endif
	@$(MAKE) -k -j 2 test-short test-race
test-short: $(GOTESTSUM)
	CGO_ENABLED=0 $(SUM) -short -timeout=30m $(TESTFLAGS) ./...
test-race: $(GOTESTSUM)
ifneq ($(shell command -v gcc 2>/dev/null),)
	CGO_ENABLED=1 $(SUM) -race -short -timeout=30m -skip '$(SLOW)' $(TESTFLAGS) $(RACE)
else
	@echo "test: NO gcc: nothing is run under the race detector" >&2
endif
check: $(GOTESTSUM) ## what .ci/run leaves out: the whole matrix, all sizes, attacks, mutants and machines; four hours (root)
ifeq ($(shell id -u),0)
	@$(MAKE) deps-test
endif
	CGO_ENABLED=0 $(SUM) -timeout=60m $(TESTFLAGS) $(WHOLE)
ifeq ($(shell id -u),0)
	@$(MAKE) -k mutants torture test-selinux test-bench
endif

.PHONY: lint
lint: deps-lint ## check style, imports, formatting, go.mod, the scripts, words and spelling
	$(LINTER) config verify
	$(LINTER) run ./...
	$(LINTER) fmt --diff
	$(GO) mod tidy -diff
	for m in $(MODULES); do (cd $$m && $(CURDIR)/$(LINTER) run ./... && $(CURDIR)/$(LINTER) fmt --diff && $(GO) mod tidy -diff); done
	shellcheck -x $(SCRIPTS)
	test/words.sh

.PHONY: torture
torture: deps-test ## attack the command: kill, power loss, errors, races (root; < 2 h; ATTACK=regexp, TORTURE=short|full|long)
	@mkdir -p bin
	cd test/system/torture && FASTLABEL_PROMISE=$(PROMISE) CGO_ENABLED=0 TORTURE=$(TORTURE) \
		$(GO) test -count=1 -v -timeout 24h -run '$(ATTACK)' $(TESTFLAGS) .

# CONTEXTS=FILE,FILE: the file contexts to compare by; without, those of Debian's policy.
CONTEXTS ?= $(CURDIR)/bin/policy/etc/selinux/default/contexts/files/file_contexts
.PHONY: test-contexts
test-contexts: deps-contexts ## compare with libselinux on every path of this system; an hour or more (CONTEXTS)
	$(if $(findstring /bin/policy/,$(CONTEXTS)),test/policy.sh bin/policy)
	FASTLABEL_PROMISE=gcc FASTLABEL_CONTEXTS=$(CONTEXTS) CGO_ENABLED=0 $(GO) test -count=1 -v -timeout 24h -run TestOracle $(TESTFLAGS) ./internal/fcontexts

.PHONY: test-image
test-image: deps-contexts deps-fresh ## label a Debian 12 in a directory as setfiles -r does (root)
	test/image.sh

.PHONY: test-runtimes
test-runtimes: deps-runtimes ## start containers with runc, crun and podman, and the hook (root)
	cd test/system/runtimes && FASTLABEL_PROMISE=$(PROMISE),runc,crun,podman CGO_ENABLED=0 $(GO) test -count=1 -timeout 15m $(TESTFLAGS) .

# Each of these is a checkout: make test-patches CRIO=DIR MOBY=DIR
PROJECTS := CRIO CONTAINERD PODMAN BUILDAH MOBY
.PHONY: test-patches
test-patches: ## apply docs/patches to checkouts, and let the projects' own tests judge (CRIO, CONTAINERD, PODMAN, BUILDAH, MOBY: directories)
	@test/patches.sh $(foreach p,$(PROJECTS),$(if $($(p)),$(shell echo $(p) | tr A-Z a-z)=$(abspath $($(p)))))

# SELINUX=regexp chooses: TestCore, TestRuntimes, TestRestorecon, TestEngine, TestBroken.
# INSIDE=regexp chooses among the tests of TestEngine.
SELINUX ?= .
INSIDE ?= .
.PHONY: test-selinux
test-selinux: deps-selinux ## boot two kernels with SELinux enforcing, and test in them (root; SELINUX=regexp)
	@mkdir -p bin
	cd test/system/selinuxvm && FASTLABEL_PROMISE=selinuxvm CGO_ENABLED=0 FASTLABEL_INSIDE='$(INSIDE)' \
		$(GO) test -count=1 -timeout 4h -run '$(SELINUX)' $(TESTFLAGS) .

# STORY=regexp chooses, as in STORY='Fails|Job'.
STORY ?=
.PHONY: test-cluster test-manifests
test-manifests: ## a Kubernetes API server takes all of deploy/kubernetes, in a strict dry run
	cd test/system/cluster && CGO_ENABLED=0 $(GO) test -count=1 -v -timeout 2h -run '^TestAccepted$$' $(TESTFLAGS) .
test-cluster: deps-cluster ## run a Kubernetes cluster with SELinux enforcing: pods that fail, pods that start (root; an hour from nothing; STORY=regexp)
	@mkdir -p bin
	cd test/system/cluster && CGO_ENABLED=0 STORY='$(STORY)' \
		$(GO) test -count=1 -v -timeout 0 -run '^TestCluster$$' $(TESTFLAGS) .

.PHONY: test-deploy
test-deploy: deps-deploy ## check deploy against the source, JSON against its schema, the unit, what install installs, and what the library imports
	cd test/system/deploy && FASTLABEL_PROMISE=$(PROMISE) CGO_ENABLED=0 $(GO) test -count=1 $(TESTFLAGS) ./...
	cd test/system && CGO_ENABLED=0 $(GO) vet ./cluster/...
	@test/imports.sh

NRI_IMAGE ?= bin/fastlabel-nri-$(VERSION).oci.tar
.PHONY: nri image-nri test-nri
nri: ## build bin/fastlabel-nri, the node plugin: experimental
	cd nri && CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o ../bin/fastlabel-nri .
image-nri: deps-image $(CYCLONEDX) ## make its container image for amd64 and arm64: NRI_IMAGE, an OCI archive in bin
	deploy/image.sh fastlabel-nri "$(VERSION)" $(CYCLONEDX) "$(NRI_IMAGE)"
test-nri: deps-test ## test the node plugin through the runtimes' side of NRI (root)
	cd nri && FASTLABEL_PROMISE=$(PROMISE) CGO_ENABLED=0 $(GO) test -count=1 $(TESTFLAGS) .

# MUTANT=regexp chooses among the entries of test/mutants, PART=I/N every Nth from the Ith on.
MUTANT ?= .
PART ?= 0/1
.PHONY: mutants
mutants: ## break the source on purpose, and see a named test notice (root; eight minutes; MUTANT=regexp, PART=0/3)
	MUTANTS=$(PART) FASTLABEL_PROMISE=$(PROMISE) CGO_ENABLED=0 $(GO) test -count=1 -v -tags mutants -parallel 2 -timeout 1h -run '^TestMutants$$/($(MUTANT))' ./test/mutants

.PHONY: fuzz
fuzz: ## run every fuzz target in turn, each for FUZZTIME (10m)
	@test/fuzz.sh $(FUZZTIME)

# PLAN is a name of bench/plan.go.
PLAN ?= quick
RESULTS ?= bin/bench-$(PLAN).jsonl
BENCHFLAGS ?=
.PHONY: bench bench-guard bench-go test-bench
bench: deps-bench build ## compare with the floor and with peers, ten minutes (root; PLAN, BENCHFLAGS); charts in bin/charts
	cd bench && { code=0; $(GO) run . run -plan $(PLAN) -o $(abspath $(RESULTS)) $(BENCHFLAGS) || code=$$?; \
		$(GO) run . table $(abspath $(RESULTS)) && $(GO) run . plot ../bin/charts $(abspath $(RESULTS)); exit $$code; }
bench-guard: ## a minute: fail where a walk's best time is over 1.6 of the floor's in three tries, or its requests to a cold disk over 0.3 (root)
	@$(MAKE) bench PLAN=guard
bench-go: ## run the Go benchmarks (BENCH=regexp to choose)
	CGO_ENABLED=0 $(GO) test -run '^$$' -bench '$(BENCH)' -benchmem ./...
test-bench: deps-bench ## test the benchmark itself
	cd bench && FASTLABEL_PROMISE=$(PROMISE) CGO_ENABLED=0 $(GO) test -count=1 $(TESTFLAGS) ./...

.PHONY: pictures
pictures: ## draw docs/pictures/*.txt as the SVGs beside them
	$(GO) run ./docs/pictures

.PHONY: cross
cross: ## build and vet for the other platforms
	@test/cross.sh

.PHONY: demo
demo: deps-demo build ## label 100,000 files on a scratch ext4 volume and read them back (root)
	@test/demo.sh bin/fastlabel

.PHONY: test-real
test-real: deps-test build ## label copies of /usr and the module cache on ext4 and XFS, compare with chcon (root)
	@test/real.sh bin/fastlabel

.PHONY: test-fresh
test-fresh: deps-fresh ## run the README's commands on a fresh Debian 12 and 13, and in a chroot (root)
	@test/fresh.sh

.PHONY: clean
clean: ## remove what was built (not .tools)
	rm -rf bin
