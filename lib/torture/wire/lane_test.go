package wire

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// lane runs a connection of pipes under a rule.
func lane(t *testing.T, r Rule) (src, dst net.Conn, end func()) {
	t.Helper()
	n := New(nil)
	n.Impose(r)
	src, front := net.Pipe()
	back, dst := net.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	c := &connection{front: front, back: back, cancel: cancel}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.lane(ctx, n, "a", "b", front, back)
	}()
	return src, dst, func() {
		src.Close()
		<-done
		cancel()
		n.Close()
	}
}

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, dst, end := lane(t, Rule{From: Parts{"a"}, To: Parts{"b"}, Delay: time.Minute})
		defer end()
		start := time.Now()
		write(t, src, "one")
		write(t, src, "two")
		got := make([]byte, 3)
		for range 2 { // both are under way at the same time
			if _, err := dst.Read(got); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took != time.Minute {
			t.Errorf("two parcels took %v", took)
		}
	})
}

func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, dst, end := lane(t, Rule{Rate: 100})
		defer end()
		start := time.Now()
		for range 3 {
			write(t, src, "ten bytes.")
			if _, err := dst.Read(make([]byte, 10)); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took != 300*time.Millisecond {
			t.Errorf("30 bytes took %v at 100 a second", took)
		}
	})
}
