package leader_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
	"github.com/seaweedmq/smq/lib/store"
)

func (b *bed) alter(req *smqpb.AlterTopicRequest) (*smqpb.TopicConfig, error) {
	req.Topic = "t"
	resp, err := b.leader.AlterTopic(b.t.Context(), req)
	return resp.GetConfig(), err
}

// wantConfig checks what the leader and the next one say of the topic.
func (b *bed) wantConfig(replicas int32, scaling *smqpb.Scaling) {
	b.t.Helper()
	for range 2 {
		resp, err := b.leader.DescribeTopic(b.t.Context(), &smqpb.DescribeTopicRequest{Topic: "t"})
		if err != nil {
			b.t.Fatal(err)
		}
		if c := resp.GetConfig(); c.GetReplicas() != replicas || !proto.Equal(c.GetScaling(), scaling) {
			b.t.Fatalf("got %v, want %d replicas and %v", c, replicas, scaling)
		}
		b.lead(b.st.Handle())
	}
}

func TestAlterTopic(t *testing.T) {
	bubble(t, nil, func(b *bed) {
		_, err := b.leader.CreateTopic(b.t.Context(), &smqpb.CreateTopicRequest{
			Topic: "t", Replicas: 1, Scaling: &smqpb.Scaling{MinSegments: 2, CoolDownMs: 1500},
		})
		wantErr(b.t, "create", err, nil)
		b.wantConfig(1, &smqpb.Scaling{MinSegments: 2, CoolDownMs: 1500})
		_, err = b.alter(&smqpb.AlterTopicRequest{Replicas: 3, Scaling: &smqpb.Scaling{Mode: "manual", SplitBytesPerSecond: 1e6, MaxSegments: 7}})
		wantErr(b.t, "alter", err, nil)
		b.wantConfig(3, &smqpb.Scaling{Mode: "manual", SplitBytesPerSecond: 1e6, MinSegments: 2, MaxSegments: 7, CoolDownMs: 1500})
		c, err := b.alter(&smqpb.AlterTopicRequest{Reset_: []string{"min_segments", "mode"}, Scaling: &smqpb.Scaling{MaxSegments: 1}})
		wantErr(b.t, "reset", err, nil)
		want := &smqpb.Scaling{SplitBytesPerSecond: 1e6, MaxSegments: 1, CoolDownMs: 1500}
		if !proto.Equal(c.GetScaling(), want) {
			b.t.Errorf("the answer is %v", c)
		}
		b.wantConfig(3, want)
		_, err = b.alter(&smqpb.AlterTopicRequest{Reset_: []string{"split_bytes_per_second", "split_messages_per_second", "max_segments", "cool_down_ms"}})
		wantErr(b.t, "reset all", err, nil)
		b.wantConfig(3, nil)
		_, err = b.alter(&smqpb.AlterTopicRequest{Reset_: []string{"replicas"}})
		wantErr(b.t, "reset the replicas", err, nil)
		b.wantConfig(0, nil)
	})
}

func TestAlterRefuses(t *testing.T) {
	bubble(t, nil, func(b *bed) {
		c := b.create("t", 8)
		for _, test := range []struct {
			req  *smqpb.AlterTopicRequest
			want error
		}{
			{&smqpb.AlterTopicRequest{Scaling: &smqpb.Scaling{Mode: "whim"}}, smq.ErrInvalid},
			{&smqpb.AlterTopicRequest{Scaling: &smqpb.Scaling{SplitBytesPerSecond: -1}}, smq.ErrInvalid},
			{&smqpb.AlterTopicRequest{Scaling: &smqpb.Scaling{SplitMessagesPerSecond: math.NaN()}}, smq.ErrInvalid},
			{&smqpb.AlterTopicRequest{Scaling: &smqpb.Scaling{CoolDownMs: math.MaxInt64}}, smq.ErrInvalid},
			{&smqpb.AlterTopicRequest{Scaling: &smqpb.Scaling{MinSegments: 8}}, smq.ErrInvalid}, // more than the most, 4
			{&smqpb.AlterTopicRequest{Scaling: &smqpb.Scaling{MaxSegments: 1}}, smq.ErrInvalid}, // less than the least, 2
			{&smqpb.AlterTopicRequest{Reset_: []string{"partitions"}}, smq.ErrInvalid},
			{&smqpb.AlterTopicRequest{Replicas: 99}, smq.ErrInvalid},
			{&smqpb.AlterTopicRequest{Replicas: 2, TopicId: "0123"}, smq.ErrNotFound},
		} {
			_, err := b.alter(&smqpb.AlterTopicRequest{Scaling: &smqpb.Scaling{MinSegments: 2, MaxSegments: 4}})
			wantErr(b.t, "alter", err, nil)
			_, err = b.alter(test.req)
			wantErr(b.t, test.req.String(), err, test.want)
		}
		b.wantConfig(1, &smqpb.Scaling{MinSegments: 2, MaxSegments: 4})
		if _, err := b.leader.DeleteTopic(b.t.Context(), &smqpb.DeleteTopicRequest{Topic: "t"}); err != nil {
			b.t.Fatal(err)
		}
		_, err := b.alter(&smqpb.AlterTopicRequest{Replicas: 2, TopicId: string(c.ID)})
		wantErr(b.t, "alter what is deleted", err, smq.ErrNotFound)
		_, err = b.leader.CreateTopic(b.t.Context(), &smqpb.CreateTopicRequest{Topic: "u", Scaling: &smqpb.Scaling{MinSegments: 3, MaxSegments: 2}})
		wantErr(b.t, "create", err, smq.ErrInvalid)
	})
}

// slowly is a store that takes its time to replace a file.
type slowly struct{ store.Store }

func (s slowly) Replace(ctx context.Context, path string, data []byte, v store.Version) (store.Version, error) {
	<-time.After(10 * time.Millisecond)
	return s.Store.Replace(ctx, path, data, v)
}

// Alterations of different fields at the same time all come true, by one leader
// and by two of which one does not know yet that it is not.
func TestAlterationsAtTheSameTime(t *testing.T) {
	bubble(t, nil, func(b *bed) {
		b.create("t", 8)
		b.lead(slowly{b.st.Handle()})
		old := b.leader
		b.leader = nil
		b.lead(slowly{b.st.Handle()})
		defer old.Stop()
		outcomes := make(chan error)
		for _, req := range []*smqpb.AlterTopicRequest{
			{Replicas: 2}, {Scaling: &smqpb.Scaling{MinSegments: 2}}, {Scaling: &smqpb.Scaling{Mode: "off"}}, {Scaling: &smqpb.Scaling{CoolDownMs: 5}},
		} {
			go func() { _, err := b.alter(req); outcomes <- err }()
		}
		for _, max := range []int32{7, 7} {
			go func() {
				_, err := old.AlterTopic(b.t.Context(), &smqpb.AlterTopicRequest{Topic: "t", Scaling: &smqpb.Scaling{MaxSegments: max}})
				outcomes <- err
			}()
		}
		for range 6 {
			wantErr(b.t, "alter", <-outcomes, nil)
		}
		b.lead(b.st.Handle())
		b.wantConfig(2, &smqpb.Scaling{Mode: "off", MinSegments: 2, MaxSegments: 7, CoolDownMs: 5})
	})
}

func TestScalingThatIsOff(t *testing.T) {
	bubble(t, []string{"a"}, func(b *bed) {
		c, first, second := b.divided()
		_, err := b.alter(&smqpb.AlterTopicRequest{Scaling: &smqpb.Scaling{Mode: "off"}})
		wantErr(b.t, "alter", err, nil)
		wantErr(b.t, "split", b.splitAt("t", first.GetId(), 2), smq.ErrConflict)
		wantErr(b.t, "merge", b.merge("t", first.GetId(), second.GetId()), smq.ErrConflict)
		_, err = b.alter(&smqpb.AlterTopicRequest{Scaling: &smqpb.Scaling{Mode: "manual"}})
		wantErr(b.t, "alter", err, nil)
		wantErr(b.t, "split", b.splitAt("t", first.GetId(), 2), nil)
		b.wantCauses(c, layout.Split, layout.Split)
	})
}

// Segments to come have as many replicas as the topic says then.
func TestReplicasOfSegmentsToCome(t *testing.T) {
	bubble(t, []string{"a", "b", "c"}, func(b *bed) {
		_, first, _ := b.divided()
		_, err := b.alter(&smqpb.AlterTopicRequest{Replicas: 2})
		wantErr(b.t, "alter", err, nil)
		wantErr(b.t, "split", b.splitAt("t", first.GetId(), 2), nil)
		for i, s := range b.live("t", 3) {
			if want := map[bool]int{true: 1, false: 0}[i < 2]; len(s.GetReplicas()) != want {
				b.t.Errorf("segment %v: %d followers, want %d", s, len(s.GetReplicas()), want)
			}
		}
	})
}

func TestListVersions(t *testing.T) {
	bubble(t, []string{"a", "b"}, func(b *bed) {
		c, first, second := b.divided()
		if err := b.merge("t", first.GetId(), second.GetId()); err != nil {
			b.t.Fatal(err)
		}
		for limit := range int32(6) {
			var causes []string
			after := uint64(0)
			for more := true; more; {
				resp, err := b.leader.ListVersions(b.t.Context(), &smqpb.ListVersionsRequest{Topic: "t", TopicId: string(c.ID), After: after, Limit: limit})
				if err != nil || resp.GetConfig().GetTopicId() != string(c.ID) || limit > 0 && len(resp.GetVersions()) > int(limit) {
					b.t.Fatalf("%v, %v", resp, err)
				}
				for _, v := range resp.GetVersions() {
					if after++; v.GetVersion() != after {
						b.t.Fatalf("version %d in the place of %d", v.GetVersion(), after)
					}
					causes = append(causes, v.GetCause())
				}
				more = resp.GetMore()
			}
			if len(causes) != 4 || causes[2] != "split" || causes[3] != "merge" {
				b.t.Fatalf("pages of %d: %v", limit, causes)
			}
		}
		_, err := b.leader.ListVersions(b.t.Context(), &smqpb.ListVersionsRequest{Topic: "t", TopicId: "0123"})
		wantErr(b.t, "of another topic", err, smq.ErrNotFound)
	})
}

// A version tells why it was written and how long publishers have waited.
func TestVersionsTellWhy(t *testing.T) {
	bubble(t, []string{"a", "b"}, func(b *bed) {
		_, first, _ := b.divided()
		b.at("a").beforeSeal = func(context.Context, smq.SegmentID) { <-time.After(70 * time.Millisecond) }
		wantErr(b.t, "split", b.splitAt("t", first.GetId(), 2), nil)
		b.kill("b")
		synctest.Wait()
		resp, err := b.leader.ListVersions(b.t.Context(), &smqpb.ListVersionsRequest{Topic: "t", After: 1, Limit: 4})
		if err != nil || len(resp.GetVersions()) != 4 {
			b.t.Fatalf("%v, %v", resp, err)
		}
		for i, want := range []*smqpb.Layout{
			{Cause: "assign"}, {Cause: "split", Reason: "by hand"}, {Cause: "split", Reason: "by hand", PauseMs: 70},
			{Cause: "failover", Reason: "broker " + string(id("b")) + " at b:7310 is dead"},
		} {
			if v := resp.GetVersions()[i]; v.GetCause() != want.GetCause() || v.GetReason() != want.GetReason() || v.GetPauseMs() != want.GetPauseMs() {
				b.t.Errorf("got %q, %q, %d ms; want %v", v.GetCause(), v.GetReason(), v.GetPauseMs(), want)
			}
		}
	})
}
