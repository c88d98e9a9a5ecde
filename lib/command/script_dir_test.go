//go:build unix && !weed

package command_test

import (
	"os"
	"testing"
)

// testStore is what storeVariable names; without it scripts run on directories.
func testStore(*testing.T) string { return os.Getenv(storeVariable) }
