// The developers' tools, pinned, in a module of their own so that what they
// need stays out of smq's go.mod. Run one with
//
//	go tool -modfile=tools/dev/go.mod NAME
module github.com/seaweedmq/smq/tools/dev

go 1.26
