# What CI runs is `make check`; everything it needs beyond Go, make and a C compiler (for
# the race detector) is found or installed by scripts/find-or-install.sh.

STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: check fmt vet test faults hostile mutations bench bench-locks build tour reference

check: fmt vet test mutations ## everything a change must pass

fmt: ## every file is as gofmt writes it
	@out=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$out" ] || { echo "gofmt would change:"; echo "$$out"; exit 1; }

vet:
	go vet ./...
	go run $(STATICCHECK) ./...
	cd bench && go vet ./...

test: ## all tests, with the race detector, on real servers
	scripts/find-or-install.sh redis-server
	scripts/find-or-install.sh postgres
	go test -race -timeout 20m ./...
	cd bench && go test -race -timeout 5m ./...

faults: ## the long form of the fault tests (the short one is part of check); APIENGINE_SEED repeats a random one of the lock
	scripts/find-or-install.sh redis-server
	APIENGINE_FAULTS=long go test -race -count=1 -timeout 60m ./lock_test
	scripts/find-or-install.sh postgres
	APIENGINE_FAULTS=long go test -count=1 -timeout 60m -run 'TestKilledNodesBookOnce|TestNoUpdateIsLostUnderFaults|TestATaskUnderKills' ./engine_test

hostile: ## every hostile script, without the race detector, which is too slow for them
	go test -count=1 -timeout 20m -run 'TestHostile|TestPeakMemory' ./jsbridge

mutations: ## (three minutes on a quiet machine) each known fault of a lock, a guard or the order of a call, put into the code, makes its test fail
	scripts/find-or-install.sh redis-server
	scripts/find-or-install.sh postgres
	go test -count=1 -tags mutation -run TestMutations -timeout 20m ./lock_test

bench: ## the figures of docs/performance.md; takes about five minutes on a quiet machine
	scripts/find-or-install.sh redis-server
	scripts/find-or-install.sh wrk
	go test -run '^$$' -bench . -benchtime 1x -timeout 30m ./engine_test

bench-locks: ## our lock beside redsync, redislock and rueidislock; about ten minutes on a quiet machine
	@cd bench && go run ./locks -redis-server "$$(../scripts/find-or-install.sh redis-server)"

build: ## bin/apiengine, static
	CGO_ENABLED=0 go build -o bin/apiengine ./cmd/apiengine

tour: build ## docs/tour.md, run again
	scripts/tour.sh bin/apiengine >docs/tour.new
	mv docs/tour.new docs/tour.md

reference: ## the table of natives in docs/scripts.md, from the code
	APIENGINE_TEST_WRITE=1 go test ./engine_test -run TestDocs
