package rpc

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/smqpb"
)

// A leading master that is paused holds nobody up: the others are asked as well, who say
// who leads by now, or at least what they know.
func TestInfoPassesAMasterThatHangs(t *testing.T) {
	for name, test := range map[string]struct {
		leading string // as m2 has it, once m1 hangs
		want    string
	}{
		"another one leads":        {leading: "m3:1", want: "m3's"},
		"nobody leads":             {leading: "", want: "m2's"},
		"nobody has noticed it":    {leading: "m1:1", want: "m2's"},
		"the one that leads hangs": {leading: "m4:1", want: "m2's"},
	} {
		t.Run(name, func(t *testing.T) {
			inTown(t, func(t *testing.T, w *town) {
				hung := w.start("m1:1", &node{info: says("m1:1", "m1's")})
				m2 := w.start("m2:1", &node{info: says("m1:1", "m2's")})
				w.start("m3:1", &node{info: says("m3:1", "m3's")})
				m4 := w.start("m4:1", &node{info: says("m4:1", "m4's")})
				c := NewCluster([]string{"m1:1", "m2:1", "m3:1"}, w.conns, nil)
				ask := func(want string, most time.Duration) {
					t.Helper()
					since := time.Now()
					info, err := c.Info(t.Context())
					if err != nil || info.GetLeader().GetAddress() != want {
						t.Errorf("got %v, %v; want %s", info, err, want)
					}
					if took := time.Since(since); took > most {
						t.Errorf("it took %v", took)
					}
				}
				ask("m1's", 0)
				if m2.calls() > 0 {
					t.Error("others are asked though the leading master answers")
				}
				if _, err := c.askMaster(t.Context(), "m4:1"); err != nil { // it has been there
					t.Fatal(err)
				}
				close(hung.net.silent)
				close(m4.net.silent)
				m2.info = says(test.leading, "m2's")
				ask(test.want, 2*othersAfter)
				ask(test.want, othersAfter) // who has answered is asked first
			})
		})
	}
}

// Of followers that hang and that fail, each is asked once.
func TestInfoAsksEachMasterOnce(t *testing.T) {
	inTown(t, func(t *testing.T, w *town) {
		nodes := []*node{w.start("m1:1", &node{}), w.start("m2:1", &node{}), w.start("m3:1", &node{})}
		nodes[0].info = func() (*smqpb.ClusterInfo, error) { time.Sleep(time.Second); return says("m1:1", "b:1")() }
		c := NewCluster([]string{"m1:1", "m2:1", "m3:1"}, w.conns, nil)
		since := time.Now()
		info, err := c.Info(t.Context())
		if err != nil || info.GetLeader().GetAddress() != "b:1" || time.Since(since) != time.Second {
			t.Errorf("got %v, %v after %v", info, err, time.Since(since))
		}
		for i, n := range nodes {
			if n.calls() != 1 {
				t.Errorf("master %d was asked %d times", i+1, n.calls())
			}
		}
	})
}

// Whoever has had enough does not wait for masters, whatever they do.
func TestInfoEndsWithItsContext(t *testing.T) {
	inTown(t, func(t *testing.T, w *town) {
		w.start("m1:1", &node{info: says("m1:1", "b:1")})
		c := NewCluster([]string{"m1:1", "m2:1"}, w.conns, nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 100 { // what is ready at once is taken by chance
			if _, err := c.Info(ctx); !errors.Is(err, context.Canceled) {
				t.Fatalf("got %v", err)
			}
		}
	})
}
