# make demo and make test are all a newcomer needs. Go 1.26 or newer; a C
# compiler makes it several times faster (without one, Go turns cgo off).

GO     ?= go
COMMIT := $(shell git rev-parse --short=12 HEAD 2>/dev/null && (git diff --quiet HEAD || echo -dirty))
COMMIT := $(subst $(eval) ,,$(COMMIT))
FLAGS  := -buildvcs=false -ldflags "-X deeploop/internal/cli.commit=$(COMMIT)"
CGO    := $(shell $(GO) env CGO_ENABLED)

# Left out under the race detector: what takes minutes there, comparisons of
# every kernel and whole training steps, dataset builds with copies, a browser and
# PyTorch, the examples of the help.
RACE_SKIP ?= MatchesRef|TestGoldenHRM|TestModelGradient|TestGoldenTRM|TestEveryVariantLearns|TestRecomputeEqualsFlat|TestDecoderAgreesWithForward|TestGoldenBuilds/.*/_8|InABrowser|ByPyTorch|OfTheReference|TestExamplesWork

# Extra flags for a shorter demo, as in
#   make demo DEMO_BUILD='--num-aug 2' DEMO_TRAIN='--steps 20' DEMO_EVAL='--augmentations 1'
DEMO_BUILD ?= --num-aug 8
ifeq ($(CGO),1)
DEMO_TRAIN ?=
DEMO_EVAL  ?=
else
DEMO_TRAIN ?= --eval-augmentations 0
DEMO_EVAL  ?= --augmentations 4
endif

.PHONY: demo demo-time build install test test-long test-amx race asan tsan bench lint clean

demo: demo-time build
	bin/hrm build-data --out data/demo --force $(DEMO_BUILD)
	bin/hrm train --data data/demo --run runs/demo --force --placement deeploop --minutes 2.5 $(DEMO_TRAIN)
	bin/hrm eval --run runs/demo $(DEMO_EVAL)
	bin/hrm score --predictions runs/demo
	@echo "demo: dataset in data/demo, checkpoints, metrics.jsonl and predictions in runs/demo"

demo-time:
ifeq ($(CGO),1)
	@echo "demo: on 2 cores a minute to build (the first time), 2.5 to train, up to one to evaluate"
else
	@echo "demo: no C compiler, so plain Go kernels: 2.5 minutes to train, a few to evaluate, and it learns little (install gcc or clang)"
endif

build:
	@mkdir -p bin
	$(GO) build $(FLAGS) -o bin/ ./cmd/hrm ./cmd/lm

install:
	$(GO) install $(FLAGS) ./cmd/hrm ./cmd/lm

test:
	$(GO) test ./...
	@test -n "$$GOLDEN_DIR" -o -d ../shared/golden || echo "test: skipped what compares with GOLDEN_DIR (recorded reference numbers): it is not set"
	@test -n "$$ARC_DATA_DIR" -o -d ../shared/data || echo "test: skipped what reads ARC_DATA_DIR (ARC corpora): it is not set"

# Minutes, and some 7 GB below TMPDIR while it runs.
test-long:
	DEEPLOOP_LONG_TESTS=1 $(GO) test -timeout 60m ./...

race:
	$(GO) test -race -skip '$(RACE_SKIP)' ./...

# The kernels for AMX tiles on any processor with AVX-512 and bf16, tiles in
# software (internal/kernel/simd/amx_emulate.h).
test-amx:
	$(GO) test -tags emulate_amx -run '/amx|Deterministic|Runtime|Emulated|OpenEvery' ./internal/kernel/simd

# Every kernel, those for tiles included, with every tail under the sanitizers
# for addresses and undefined behaviour (gcc or clang, Linux). For the name of
# the case that a report belongs to: make asan ASAN_FLAGS=-v
SANITIZE := -fsanitize=undefined -fno-sanitize-recover=undefined
asan:
	CGO_CFLAGS='-g -O2 $(SANITIZE)' CGO_LDFLAGS='$(SANITIZE)' $(GO) test -asan -gcflags=all=-asan=false -tags emulate_amx \
		-timeout 30m $(ASAN_FLAGS) ./internal/kernel/simd

# The pool of threads under the thread sanitizer.
tsan:
	@mkdir -p bin
	$$($(GO) env CC) -fsanitize=thread -g -O1 -std=c11 -D_GNU_SOURCE -Wall -Wextra -o bin/pool_race \
		internal/kernel/simd/testdata/pool_race.c internal/kernel/simd/pool.c -lpthread
	bin/pool_race

# Every figure of speed in one table, some 25 minutes on 2 quiet cores: steps of
# HRM and of the language model and products beside PyTorch's (skipped without
# python3-torch), gradient errors, growth, kernels. Narrow it with, say,
#   make bench BENCH_STEPS='-configs A -rounds 2' BENCH_LM=no BENCH_PRODUCTS='-shapes 4' BENCH_GRADIENTS='-configs A -train 0'
# A part of which the variable is "no" is left out.
BENCH_OUT       ?= runs/bench
BENCH_STEPS     ?=
BENCH_LM        ?=
BENCH_PRODUCTS  ?=
BENCH_GRADIENTS ?= -configs A,C -train 20
BENCH_GROWTH    ?= -rounds 3
BENCH_PIECES    ?= -bench 'Attention|Kernels|Probes' -benchtime 20ms ./internal/kernel/simd

bench: build
	$(GO) build $(FLAGS) -o bin/bench/ ./bench/steps ./bench/products ./bench/gradients ./bench/growth
	@mkdir -p $(BENCH_OUT) && cd $(BENCH_OUT) && rm -f table.md growth.png steps.json lm.json products.json gradients.json growth.json
ifneq ($(BENCH_STEPS),no)
	bin/bench/steps -out $(BENCH_OUT)/table.md -json $(BENCH_OUT)/steps.json $(BENCH_STEPS)
endif
ifneq ($(BENCH_LM),no)
	bin/bench/steps -configs gpt2,bytes,gpt2-short -precisions bf16 -out $(BENCH_OUT)/table.md -json $(BENCH_OUT)/lm.json $(BENCH_LM)
endif
ifneq ($(BENCH_PRODUCTS),no)
	bin/bench/products -out $(BENCH_OUT)/table.md -json $(BENCH_OUT)/products.json $(BENCH_PRODUCTS)
endif
ifneq ($(BENCH_GRADIENTS),no)
	bin/bench/gradients -out $(BENCH_OUT)/table.md -json $(BENCH_OUT)/gradients.json $(BENCH_GRADIENTS)
endif
ifneq ($(BENCH_GROWTH),no)
	@printf '## Growth\n\n' >>$(BENCH_OUT)/table.md
	bin/bench/growth -picture $(BENCH_OUT)/growth.png -json $(BENCH_OUT)/growth.json $(BENCH_GROWTH) >>$(BENCH_OUT)/table.md
endif
ifneq ($(BENCH_PIECES),no)
	@printf '\n## Pieces\n\n```\n' >>$(BENCH_OUT)/table.md
	$(GO) test -run '^$$' $(BENCH_PIECES) >>$(BENCH_OUT)/table.md
	@printf '```\n' >>$(BENCH_OUT)/table.md
endif
	@echo "bench: the table is $(BENCH_OUT)/table.md, all figures are in $(BENCH_OUT)/*.json"

lint:
	@test -z "$$(gofmt -l .)" || { echo "not formatted by gofmt:"; gofmt -l .; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

clean:
	rm -rf bin data/demo runs/demo
