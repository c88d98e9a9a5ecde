//go:build weed

package seaweed

import (
	"testing"

	"github.com/seaweedmq/smq/lib/store"
	"github.com/seaweedmq/smq/lib/store/storetest"
)

func TestConformance(t *testing.T) {
	server := sharedServer(t)
	storetest.Run(t, func(t *testing.T) (store.Store, store.Store) {
		folder := freshFolder()
		return openAt(t, server, folder), openAt(t, server, folder)
	})
}
