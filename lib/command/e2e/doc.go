// Package e2e has tests alone: whole clusters of real processes, driven by the
// commands that users have, while processes are killed, paused and cut off.
//
// # What is checked
//
// A publisher numbers its messages and reports each ack; a subscriber writes
// where it found each message. From both, ledger_test.go concludes whether every
// message arrived, none twice, in order, at the place that its ack named.
// Whatever a test does, all it started is killed at its end, and nothing that
// any process has written may look like a fault in the program.
//
// # Waiting
//
// Tests wait for what can be observed (acks, the layout, an address file), never
// for time to pass. Everything they wait for has one and the same patience,
// which is far longer than it takes.
//
// # Size
//
// SMQ_E2E_SCALE=N makes the tests that have a size N times as large, and
// SMQ_E2E_RACE=1 has the race detector in all processes. With the build tag weed
// the tests run on a real SeaweedFS server instead of a directory:
//
//	go test ./lib/command/e2e
//	SMQ_E2E_SCALE=10 go test -timeout 1h ./lib/command/e2e
//	go test -tags weed ./lib/command/e2e
package e2e
