# The steps of .ci/run by name.

.PHONY: check build generate fmt vet lint tidy tests generated cross demo torture race weed

check: ## everything quick; .ci/run adds the demo, the race detector and SeaweedFS
	.ci/run fmt vet lint tidy tests generated cross

build: ## the five binaries, to bin/
	go build -o bin/ ./cmd/...

generate: ## protobuf
	go generate ./lib/smqpb

fmt vet lint tidy tests generated cross demo torture race weed:
	.ci/run $@
