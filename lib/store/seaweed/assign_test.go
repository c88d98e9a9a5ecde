package seaweed

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	pb "github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"

	"github.com/seaweedmq/smq/lib/smq"
)

// poolOf makes a pool whose batches come one after the other, and counts them.
func poolOf(token string) (*idPool, *atomic.Int64) {
	var asked atomic.Int64
	assign := func(_ context.Context, count int) (*batch, error) {
		n := asked.Add(1)
		return newBatch(&pb.AssignVolumeResponse{
			FileId: fmt.Sprintf("%d,%02x637037d6", n, n), Count: int32(count), Auth: token,
			Location: &pb.Location{Url: "volume:8080"},
		})
	}
	return &idPool{assign: assign, assigning: make(chan struct{}, 1)}, &asked
}

func take(t *testing.T, p *idPool) slot {
	t.Helper()
	s, err := p.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestIDPool takes ids: all differ, are named as the volume server wants it,
// and are asked for in batches.
func TestIDPool(t *testing.T) {
	p, asked := poolOf("")
	seen := map[fileID]bool{}
	for i := range 3 * assignAhead {
		s := take(t, p)
		n, key := uint32(i/assignAhead+1), uint64(i/assignAhead+1+i%assignAhead)
		if s.id != (fileID{n, key, 0x637037d6}) || s.host != "volume:8080" || seen[s.id] {
			t.Fatalf("id %d is %+v", i, s)
		}
		want := fmt.Sprintf("/%d,%02x637037d6", n, n)
		if i%assignAhead > 0 {
			want = fmt.Sprintf("%s_%d", want, i%assignAhead)
		}
		if s.path != want {
			t.Errorf("id %d goes to %s, want %s", i, s.path, want)
		}
		seen[s.id] = true
	}
	if asked.Load() != 3 {
		t.Errorf("asked %d times", asked.Load())
	}
	take(t, p)
	p.distrust(9)
	take(t, p)
	if asked.Load() != 4 {
		t.Errorf("asked %d times, after distrust of another volume", asked.Load())
	}
	p.distrust(4)
	if s := take(t, p); s.id.volume != 5 {
		t.Errorf("after distrust of volume 4 it gives %+v", s)
	}
}

// TestIDPoolAges lets ids grow old, with and without a token.
func TestIDPoolAges(t *testing.T) {
	for token, life := range map[string]time.Duration{"": idLife, "token": idLifeSigned} {
		synctest.Test(t, func(t *testing.T) {
			p, asked := poolOf(token)
			take(t, p)
			time.Sleep(life) // of the bubble's clock
			if take(t, p); asked.Load() != 1 {
				t.Errorf("asked %d times within %v", asked.Load(), life)
			}
			time.Sleep(time.Nanosecond)
			if s := take(t, p); asked.Load() != 2 || s.token != token {
				t.Errorf("asked %d times after %v; the token is %q", asked.Load(), life, s.token)
			}
		})
	}
}

// TestIDPoolAtOnce has many take at once: one of them asks.
func TestIDPoolAtOnce(t *testing.T) {
	p, asked := poolOf("")
	var mu sync.Mutex
	var wg sync.WaitGroup
	seen := map[fileID]bool{}
	for range 10 * assignAhead {
		wg.Go(func() {
			s, err := p.take(t.Context())
			mu.Lock()
			defer mu.Unlock()
			if err != nil || seen[s.id] {
				t.Errorf("id %v again, or %v", s.id, err)
			}
			seen[s.id] = true
		})
	}
	wg.Wait()
	if asked.Load() != 10 {
		t.Errorf("asked %d times", asked.Load())
	}
}

// TestIDPoolFails has nothing to give, and a caller that waits no longer.
func TestIDPoolFails(t *testing.T) {
	p := &idPool{assigning: make(chan struct{}, 1)}
	p.assign = func(context.Context, int) (*batch, error) { return nil, smq.ErrNoSpace }
	if _, err := p.take(t.Context()); !errors.Is(err, smq.ErrNoSpace) {
		t.Errorf("take = %v", err)
	}
	p.assigning <- struct{}{} // somebody asks, and gets no answer
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.take(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("take = %v", err)
	}
	for _, id := range []string{"", "3", "x,01637037d6"} {
		if b, err := newBatch(&pb.AssignVolumeResponse{FileId: id}); err == nil {
			t.Errorf("newBatch(%q) = %+v", id, b)
		}
	}
}
