# What .ci/run runs, step by step, for people.

TOOL := go tool -modfile=tools/dev/go.mod

.PHONY: check fmt vet lint test race weed cross generate tidy build

check: fmt vet lint tidy test cross ## everything quick; .ci/run adds race and weed

build: ## the five binaries, to bin/
	go build -o bin/ ./cmd/...

fmt:
	@files=$$(gofmt -l cmd lib tools); test -z "$$files" || { echo "not gofmt'ed: $$files"; exit 1; }

vet:
	go vet ./...
	go vet -tags weed ./...

lint:
	$(TOOL) staticcheck -tags weed ./...

tidy:
	go mod tidy -diff

test:
	go test ./...

race: ## but for the tests of whole processes, which are built without it
	go test -race $$(go list ./... | grep -v /e2e)

weed: ## against a real SeaweedFS server, built once into tools/weed/bin
	go -C tools/weed run .
	go test -tags weed -count=1 ./lib/store/seaweed/... ./lib/command/...

cross: ## what compiles where
	tools/cross.sh

generate: ## protobuf
	go generate ./lib/smqpb
