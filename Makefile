# make demo and make test are all a newcomer needs. Go 1.26 or newer; a C
# compiler makes it several times faster (without one, Go turns cgo off).

GO     ?= go
COMMIT := $(shell git rev-parse --short=12 HEAD 2>/dev/null && (git diff --quiet HEAD || echo -dirty))
COMMIT := $(subst $(eval) ,,$(COMMIT))
FLAGS  := -buildvcs=false -ldflags "-X deeploop/internal/cli.commit=$(COMMIT)"
CGO    := $(shell $(GO) env CGO_ENABLED)

# Long numeric comparisons are left out under the race detector.
RACE_SKIP ?= Golden|MatchesRef|Gradient

# Extra flags for a shorter demo, as in
#   make demo DEMO_BUILD='--num-aug 2' DEMO_TRAIN='--steps 20' DEMO_EVAL='--augmentations 1'
DEMO_BUILD ?=
DEMO_TRAIN ?=
DEMO_EVAL  ?=

.PHONY: demo build install test race bench lint clean

demo: build
ifeq ($(CGO),1)
	@echo "demo: about 4 minutes on 2 cores"
else
	@echo "demo: no C compiler, so the plain Go kernels: about an hour on 2 cores (install gcc or clang for about 4 minutes)"
endif
	bin/hrm build-data --out data/demo --force $(DEMO_BUILD)
	bin/hrm train --data data/demo --run runs/demo --force --minutes 3 $(DEMO_TRAIN)
	bin/hrm eval --run runs/demo $(DEMO_EVAL)
	bin/hrm score
	@echo "demo: dataset in data/demo, checkpoints, metrics.jsonl and predictions in runs/demo"

build:
	@mkdir -p bin
	$(GO) build $(FLAGS) -o bin/ ./cmd/hrm ./cmd/lm

install:
	$(GO) install $(FLAGS) ./cmd/hrm ./cmd/lm

test:
	$(GO) test ./...
	@test -n "$$GOLDEN_DIR" -o -d ../shared/golden || echo "test: skipped what compares with GOLDEN_DIR (recorded reference numbers): it is not set"
	@test -n "$$ARC_DATA_DIR" -o -d ../shared/data || echo "test: skipped what reads ARC_DATA_DIR (ARC corpora): it is not set"

race:
	$(GO) test -race -skip '$(RACE_SKIP)' ./...

bench:
	$(GO) test -run '^$$' -bench . ./...

lint:
	@test -z "$$(gofmt -l .)" || { echo "not formatted by gofmt:"; gofmt -l .; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

clean:
	rm -rf bin data/demo runs/demo
