package client

import (
	"fmt"
	"testing"

	"github.com/seaweedmq/smq/lib/rpc"
)

// panicking stands in for a test where there is none.
type panicking struct{ testing.TB }

func (panicking) Fatal(args ...any)            { panic(fmt.Sprint(args...)) }
func (panicking) Fatalf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }

// StartCluster starts a cluster in memory for the examples, with a topic
// "orders" of four partitions.
func StartCluster() (cfg Config, stop func()) {
	f := newFakeCluster(panicking{}, 2, 4)
	return Config{Masters: []string{"master:7300"}, Dial: rpc.DialOptions{Dialer: f.dial}}, f.close
}
