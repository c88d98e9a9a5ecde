package leader_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
	"github.com/seaweedmq/smq/lib/store"
)

var errCut = errors.New("the process was killed")

// cut is a process's handle on a store; the process is killed at one of its
// operations.
type cut struct {
	store.Store
	at      int  // the operation, from 1 on; 0: never
	applied bool // that operation still takes effect

	mu   sync.Mutex
	done int
}

// gate runs one operation, or not.
func (c *cut) gate(apply func() error) error {
	c.mu.Lock()
	c.done++
	n := c.done
	c.mu.Unlock()
	switch {
	case c.at == 0 || n < c.at:
		return apply()
	case n == c.at && c.applied:
		_ = apply() // nobody is left to hear how it went
	}
	return errCut
}

func (c *cut) killed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at > 0 && c.done >= c.at
}

func (c *cut) Create(ctx context.Context, path string, content []store.Part) error {
	return c.gate(func() error { return c.Store.Create(ctx, path, content) })
}

func (c *cut) Replace(ctx context.Context, path string, data []byte, v store.Version) (out store.Version, err error) {
	err = c.gate(func() error { out, err = c.Store.Replace(ctx, path, data, v); return err })
	return out, err
}

func (c *cut) Read(ctx context.Context, path string) (data []byte, v store.Version, err error) {
	err = c.gate(func() error { data, v, err = c.Store.Read(ctx, path); return err })
	return data, v, err
}

func (c *cut) ReadAt(ctx context.Context, path string, p []byte, off int64) (n int, err error) {
	err = c.gate(func() error { n, err = c.Store.ReadAt(ctx, path, p, off); return err })
	return n, err
}

func (c *cut) Stat(ctx context.Context, path string) (info store.Info, err error) {
	err = c.gate(func() error { info, err = c.Store.Stat(ctx, path); return err })
	return info, err
}

func (c *cut) List(ctx context.Context, dir, after string, limit int) (infos []store.Info, err error) {
	err = c.gate(func() error { infos, err = c.Store.List(ctx, dir, after, limit); return err })
	return infos, err
}

func (c *cut) RemoveAll(ctx context.Context, dir string) error {
	return c.gate(func() error { return c.Store.RemoveAll(ctx, dir) })
}

// life takes a topic through everything that a leader does to one. Each step
// can be repeated.
func life(b *bed) []func() error {
	ctx := b.t.Context()
	var first string // id of the incarnation
	create := func() error {
		_, err := b.leader.CreateTopic(ctx, &smqpb.CreateTopicRequest{Topic: "t", Partitions: 8, Replicas: 1})
		if errors.Is(err, smq.ErrExists) {
			return nil
		}
		return err
	}
	publish := func(value string) func() error {
		return func() error { return b.tryPublish("t", 3, value) }
	}
	seal := func() error {
		resp, err := b.leader.DescribeTopic(ctx, &smqpb.DescribeTopicRequest{Topic: "t"})
		if err != nil {
			return err
		}
		first = resp.GetConfig().GetTopicId()
		s := resp.GetLayout().GetSegments()[0]
		if s.GetOwner() != string(id("a")) {
			return nil // an earlier attempt has moved it
		}
		log := b.at("a").logs[logKey(smq.TopicID(first), smq.SegmentID(s.GetId()))]
		if _, err := log.Seal(ctx); err != nil {
			return err
		}
		_, err = b.leader.ReportSealed(ctx, &smqpb.ReportSealedRequest{
			Topic: "t", TopicId: first, Segment: s.GetId(), Cause: string(layout.Drain), Broker: s.GetOwner(),
		})
		return err
	}
	die := func() error { b.kill("b"); return nil }
	// Both can be repeated: an attempt that was cut short has happened, or has
	// left as many segments as there were.
	split := func() error {
		segments, err := b.segments("t")
		if err == nil && len(segments) == 1 {
			err = b.splitAt("t", segments[0].GetId(), 3)
		}
		return err
	}
	merge := func() error {
		segments, err := b.segments("t")
		if err == nil && len(segments) == 2 {
			err = b.merge("t", segments[1].GetId(), segments[0].GetId())
		}
		return err
	}
	alter := func() error {
		_, err := b.leader.AlterTopic(ctx, &smqpb.AlterTopicRequest{Topic: "t", Scaling: &smqpb.Scaling{Mode: "manual", MaxSegments: 2}})
		return err
	}
	altered := func() error {
		resp, err := b.leader.DescribeTopic(ctx, &smqpb.DescribeTopicRequest{Topic: "t"})
		if s := resp.GetConfig().GetScaling(); err == nil && (s.GetMode() != "manual" || s.GetMaxSegments() != 2) {
			return fmt.Errorf("its scaling is %v", s)
		}
		return err
	}
	wantSegments := func(n int) func() error {
		return func() error {
			if segments, err := b.segments("t"); err != nil || len(segments) != n {
				return fmt.Errorf("%d segments, want %d: %v; %v", len(segments), n, segments, err)
			}
			return nil
		}
	}
	remove := func() error {
		_, err := b.leader.DeleteTopic(ctx, &smqpb.DeleteTopicRequest{Topic: "t", TopicId: first})
		return err
	}
	verify := func() error { b.check("t"); return nil }
	return []func() error{
		create, publish("one"), seal, publish("two"), die, publish("three"), verify,
		alter, altered, split, wantSegments(2), publish("after the split"), merge, wantSegments(1), publish("after the merge"), verify,
		remove, create, publish("four"), verify,
	}
}

// run takes the steps under a leader that is killed at one of its operations,
// and then under one that is not. It returns how many operations the first one
// got to.
func runLife(t *testing.T, at int, applied bool) (operations int) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, "a", "b", "c")
		handle := &cut{Store: b.st.Handle(), at: at, applied: applied}
		b.lead(handle)
		for i, step := range life(b) {
			err := step()
			if err != nil && handle.killed() && b.term == 1 {
				b.lead(b.st.Handle())
				err = step()
			}
			if err != nil {
				t.Fatalf("killed at operation %d (applied: %v): step %d: %v", at, applied, i, err)
			}
		}
		b.lead(b.st.Handle())
		synctest.Wait() // for its sweep
		topic := smq.Topic{Namespace: smq.DefaultNamespace, Name: "t"}
		ids, err := catalog.Incarnations(t.Context(), b.st, topic)
		if err != nil || len(ids) != 1 {
			t.Fatalf("killed at operation %d (applied: %v): left are %v, %v", at, applied, ids, err)
		}
		b.check("t")
		operations = handle.done
	})
	return operations
}

// Whatever a leader was doing when it died, the next one finishes, and nothing
// acked is lost.
func TestP1P6ALeaderIsKilledAtAnyStep(t *testing.T) {
	total := runLife(t, 0, false)
	if total < 30 {
		t.Fatalf("only %d operations", total)
	}
	for at := 1; at <= total; at++ {
		for _, applied := range []bool{false, true} {
			runLife(t, at, applied)
		}
	}
}

// unsure is a handle whose changes now and then have an unknown outcome: some
// take effect, some do not, some do later.
type unsure struct {
	store.Store
	mu   sync.Mutex
	n    int
	late []func()
}

func (u *unsure) change(apply func() error) error {
	u.mu.Lock()
	u.n++
	n := u.n
	for _, f := range u.late {
		f()
	}
	u.late = nil
	if n%4 == 3 {
		u.late = append(u.late, func() { _ = apply() })
	}
	u.mu.Unlock()
	switch n % 4 {
	case 1:
		_ = apply()
	case 0:
		return apply()
	}
	return fmt.Errorf("change %d: %w", n, store.ErrAmbiguous)
}

func (u *unsure) Create(ctx context.Context, path string, content []store.Part) error {
	return u.change(func() error { return u.Store.Create(context.WithoutCancel(ctx), path, content) })
}

func (u *unsure) Replace(ctx context.Context, path string, data []byte, v store.Version) (store.Version, error) {
	var next atomic.Pointer[store.Version] // it may come when nobody waits any more
	err := u.change(func() error {
		got, err := u.Store.Replace(context.WithoutCancel(ctx), path, data, v)
		next.Store(&got)
		return err
	})
	if err != nil {
		return "", err
	}
	return *next.Load(), nil
}

func TestOutcomesUnknown(t *testing.T) {
	for shift := range 4 {
		synctest.Test(t, func(t *testing.T) {
			b := newBed(t, "a", "b", "c")
			b.lead(&unsure{Store: b.st.Handle(), n: shift})
			for i, step := range life(b) {
				if err := step(); err != nil {
					t.Fatalf("shift %d: step %d: %v", shift, i, err)
				}
			}
		})
	}
}
