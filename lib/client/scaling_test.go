package client

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// lowerEnds are the lower ends of a layout's segments.
func lowerEnds(l *smqpb.Layout) (at []int32) {
	for _, s := range l.GetSegments() {
		at = append(at, s.GetLo())
	}
	return at
}

func TestSplitAndMerge(t *testing.T) {
	withCluster(t, 2, 8, func(t *testing.T, f *fakeCluster, c *Client) {
		f.leader = 1
		l, err := c.SplitSegment(t.Context(), fakeTopic, 1, 0)
		if err != nil || !slices.Equal(lowerEnds(l), []int32{0, 4}) {
			t.Fatalf("split in halves: %v, %v", l, err)
		}
		l, err = c.SplitSegment(t.Context(), fakeTopic, 2, 1)
		if err != nil || !slices.Equal(lowerEnds(l), []int32{0, 1, 4}) {
			t.Fatalf("split at 1: %v, %v", l, err)
		}
		l, err = c.MergeSegments(t.Context(), fakeTopic, []uint64{5, 3})
		if err != nil || !slices.Equal(lowerEnds(l), []int32{0, 1}) {
			t.Fatalf("merged: %v, %v", l, err)
		}
		if _, err := c.SplitSegment(t.Context(), fakeTopic, 1, 0); !errors.Is(err, smq.ErrNotFound) {
			t.Errorf("a segment that was split: %v", err)
		}
		if _, err := c.MergeSegments(t.Context(), fakeTopic, []uint64{2, 3}); !errors.Is(err, smq.ErrConflict) {
			t.Errorf("segments that were merged: %v", err)
		}
		if _, err := c.SplitSegment(t.Context(), smq.Topic{Namespace: smq.DefaultNamespace, Name: "none"}, 1, 0); !errors.Is(err, smq.ErrNotFound) {
			t.Errorf("no such topic: %v", err)
		}
	})
}

// The change is made, and nobody hears of it: the next try finds it made.
func TestChangesWhoseAnswerIsLost(t *testing.T) {
	withCluster(t, 2, 8, func(t *testing.T, f *fakeCluster, c *Client) {
		f.scaling.lostChange = true
		l, err := c.SplitSegment(t.Context(), fakeTopic, 1, 3)
		if err != nil || l.GetVersion() != 2 || !slices.Equal(lowerEnds(l), []int32{0, 3}) || f.scaling.calls != 2 {
			t.Fatalf("split with %d calls: %v, %v", f.scaling.calls, l, err)
		}
		f.scaling.lostChange = true
		l, err = c.MergeSegments(t.Context(), fakeTopic, []uint64{2, 3})
		if err != nil || l.GetVersion() != 3 || !slices.Equal(lowerEnds(l), []int32{0}) {
			t.Fatalf("merge: %v, %v", l, err)
		}
		// What was done before this call is not its doing.
		f.scaling.lostBefore = true
		if _, err := c.SplitSegment(t.Context(), fakeTopic, 1, 3); !errors.Is(err, smq.ErrNotFound) {
			t.Errorf("split long ago: %v", err)
		}
		// Nor is what another kind of change has done.
		f.scaling.lostBefore = true
		f.scaling.meanwhile = func() {
			sealed := f.change(func(*smqpb.Segment) bool { return true })
			f.place(0, 8)
			f.made("failover", sealed)
		}
		if _, err := c.MergeSegments(t.Context(), fakeTopic, []uint64{4}); !errors.Is(err, smq.ErrConflict) {
			t.Errorf("replaced otherwise: %v", err)
		}
	})
}

// A topic that takes the place of the one meant is not touched.
func TestChangesOfATopicCreatedAgain(t *testing.T) {
	withCluster(t, 1, 8, func(t *testing.T, f *fakeCluster, c *Client) {
		f.scaling.lostBefore, f.scaling.meanwhile = true, func() { f.config.TopicId = "another" }
		if _, err := c.SplitSegment(t.Context(), fakeTopic, 1, 0); !errors.Is(err, smq.ErrNotFound) || len(f.scaling.versions) > 0 {
			t.Errorf("%v, versions %v", err, f.scaling.versions)
		}
	})
}

func TestVersions(t *testing.T) {
	withCluster(t, 2, 8, func(t *testing.T, f *fakeCluster, c *Client) {
		for _, id := range []uint64{1, 2, 4, 6, 3} { // more than two pages
			if _, err := c.SplitSegment(t.Context(), fakeTopic, id, 0); err != nil && id != 6 {
				t.Fatal(err)
			}
		}
		read := func(most int) (versions []uint64) {
			for v, err := range c.Versions(t.Context(), fakeTopic) {
				if err != nil {
					t.Fatal(err)
				}
				if versions = append(versions, v.GetVersion()); len(versions) == most {
					break
				}
			}
			return versions
		}
		if got := read(0); !slices.Equal(got, []uint64{2, 3, 4, 5, 6}) {
			t.Errorf("all: %v", got)
		}
		if got := read(3); !slices.Equal(got, []uint64{2, 3, 4}) {
			t.Errorf("three: %v", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, err := range c.Versions(ctx, fakeTopic) {
			if err == nil {
				t.Error("a cancelled list goes on")
			}
		}
	})
}

// An error that comes with a version is about that one alone, also where a page
// has no other.
func TestVersionsGoOnPastDamage(t *testing.T) {
	withCluster(t, 2, 8, func(t *testing.T, f *fakeCluster, c *Client) {
		for v := range uint64(7) {
			f.scaling.versions = append(f.scaling.versions, &smqpb.Layout{Version: v + 1})
		}
		f.scaling.damaged = map[uint64]bool{2: true, 3: true, 4: true, 5: true, 7: true}
		var versions []uint64
		for v, err := range c.Versions(t.Context(), fakeTopic) {
			versions = append(versions, v.GetVersion())
			if f.scaling.damaged[v.GetVersion()] != errors.Is(err, smq.ErrCorrupt) {
				t.Errorf("version %d: %v", v.GetVersion(), err)
			}
		}
		if !slices.Equal(versions, []uint64{1, 2, 3, 4, 5, 6, 7}) {
			t.Errorf("got %v", versions)
		}
	})
}

func TestAlterTopic(t *testing.T) {
	withCluster(t, 1, 8, func(t *testing.T, f *fakeCluster, c *Client) {
		f.scaling.lostBefore = true
		config, err := c.AlterTopic(t.Context(), fakeTopic, TopicChanges{
			Scaling: &smqpb.Scaling{Mode: "auto", MaxSegments: 4}, Reset: []string{"cool_down_ms"}, Replicas: 2,
		})
		if err != nil || config.GetScaling().GetMaxSegments() != 4 || config.GetReplicas() != 2 {
			t.Fatalf("%v, %v", config, err)
		}
		if got := f.scaling.altered; got.GetScaling().GetMode() != "auto" || !slices.Equal(got.GetReset_(), []string{"cool_down_ms"}) {
			t.Errorf("the leader was told %v", got)
		}
		if _, err := c.AlterTopic(t.Context(), smq.Topic{Namespace: "a", Name: "none"}, TopicChanges{}); !errors.Is(err, smq.ErrNotFound) {
			t.Errorf("no such topic: %v", err)
		}
	})
}
