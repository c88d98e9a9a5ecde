//go:build unix && !weed

package e2e

import "testing"

// newStore is the URL of an empty store for the length of a test.
func newStore(t testing.TB) string { return dirStore(t) }

// stopServers ends what newStore has started for all tests.
func stopServers() {}
