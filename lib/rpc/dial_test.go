package rpc

import (
	"context"
	"maps"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// Addresses that nobody asks for any more are forgotten, unless something is under way.
func TestUnusedConnectionsAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conns := NewConns(DialOptions{Dialer: func(ctx context.Context, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		defer conns.Close()
		get := func(addr string) {
			conn, err := conns.Get(addr)
			if err != nil {
				t.Fatal(err)
			}
			if addr == "busy:1" {
				conn.Connect()
				synctest.Wait()
			}
		}
		get("gone:1")
		get("used:1")
		time.Sleep(unusedFor)
		get("used:1")
		get("busy:1")
		conns.conns["busy:1"].asked = time.Now().Add(-unusedFor)
		get("new:1")
		if left := slices.Sorted(maps.Keys(conns.conns)); !slices.Equal(left, []string{"busy:1", "new:1", "used:1"}) {
			t.Errorf("kept are %v", left)
		}
	})
}
