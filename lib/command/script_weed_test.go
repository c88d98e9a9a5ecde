//go:build unix && weed

package command_test

import (
	"os"
	"testing"

	"github.com/seaweedmq/smq/lib/store/seaweed/weedtest"
)

// testStore is what storeVariable names, or a SeaweedFS server that is started
// for the scripts.
func testStore(t *testing.T) string {
	if url := os.Getenv(storeVariable); url != "" {
		return url
	}
	return "seaweedfs://" + weedtest.Start(t).Filer() + "/scripts"
}
