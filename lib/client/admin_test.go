package client

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

func TestConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeCluster(t, 1, 1)
		defer f.close()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := Connect(ctx, Config{Masters: []string{"nobody:1", "nobody:2"}, Dial: rpc.DialOptions{Dialer: f.dial}})
		if !errors.Is(err, smq.ErrUnavailable) || !strings.Contains(err.Error(), "nobody:1") || !strings.Contains(err.Error(), "nobody:2") {
			t.Errorf("nobody there: %v", err)
		}
		if _, err := Connect(t.Context(), Config{}); !errors.Is(err, smq.ErrInvalid) {
			t.Errorf("no masters: %v", err)
		}
		c := f.connect()
		info, err := c.Cluster(t.Context())
		if err != nil || len(info.Brokers) != 1 {
			t.Errorf("cluster: %v, %v", info, err)
		}
		c.Close()
		c.Close()
		if _, err := c.Cluster(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("after close: %v", err)
		}
		if _, err := c.DescribeTopic(t.Context(), fakeTopic); !errors.Is(err, ErrClosed) {
			t.Errorf("after close: %v", err)
		}
	})
}

func TestCreateTopic(t *testing.T) {
	withCluster(t, 2, 4, func(t *testing.T, f *fakeCluster, c *Client) {
		if _, err := c.CreateTopic(t.Context(), fakeTopic, TopicOptions{}); !errors.Is(err, smq.ErrExists) {
			t.Errorf("a topic that exists: %v", err)
		}
		for _, o := range []TopicOptions{{Partitions: -1}, {Partitions: smq.MaxPartitions + 1}, {Key: "nonsense"}} {
			if _, err := c.CreateTopic(t.Context(), fakeTopic, o); !errors.Is(err, smq.ErrInvalid) {
				t.Errorf("%+v: %v", o, err)
			}
		}
		if err := c.DeleteTopic(t.Context(), fakeTopic); err != nil {
			t.Fatal(err)
		}
		if err := c.DeleteTopic(t.Context(), fakeTopic); !errors.Is(err, smq.ErrNotFound) {
			t.Errorf("delete again: %v", err)
		}
		// The answer to the first try is lost; the topic is this call's all the same.
		f.lostCreate = true
		config, err := c.CreateTopic(t.Context(), fakeTopic, TopicOptions{Partitions: 7, Key: "header:user"})
		if err != nil || config.GetPartitions() != 7 || config.GetKey() != "header:user" || f.creates < 3 {
			t.Errorf("after %d tries: %v, %v", f.creates, config, err)
		}
		if err := c.DeleteTopic(t.Context(), fakeTopic); err != nil {
			t.Fatal(err)
		}
		config, err = c.CreateTopic(t.Context(), fakeTopic, TopicOptions{})
		if err != nil || config.GetPartitions() != smq.DefaultPartitions {
			t.Errorf("%v, %v", config, err)
		}
		described, err := c.DescribeTopic(t.Context(), fakeTopic)
		if err != nil || described.GetConfig().GetPartitions() != smq.DefaultPartitions || described.GetLayout() == nil {
			t.Errorf("described %v, %v", described, err)
		}
	})
}

func TestListTopics(t *testing.T) {
	withCluster(t, 2, 1, func(t *testing.T, f *fakeCluster, c *Client) {
		f.names = []string{"a/1", "a/2", "b/1", "b/2", "b/3", "c/1", "c/2"}
		list := func(namespace string, most int) (names []string) {
			for topic, err := range c.ListTopics(t.Context(), namespace, ListOptions{}) {
				if err != nil {
					t.Fatal(err)
				}
				names = append(names, topic.GetConfig().GetTopic())
				if len(names) == most {
					break
				}
			}
			return names
		}
		if got := list("", 0); !slices.Equal(got, f.names) {
			t.Errorf("all: %v", got)
		}
		if got := list("b", 0); !slices.Equal(got, f.names[2:5]) {
			t.Errorf("of b: %v", got)
		}
		if got := list("", 3); !slices.Equal(got, f.names[:3]) {
			t.Errorf("three: %v", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, err := range c.ListTopics(ctx, "", ListOptions{}) {
			if err == nil {
				t.Error("a cancelled list goes on")
			}
		}
	})
}

// An error that comes with a topic is about that one alone.
func TestListTopicsGoesOnPastDamage(t *testing.T) {
	withCluster(t, 2, 1, func(t *testing.T, f *fakeCluster, c *Client) {
		f.names = []string{"a/1", "a/2", "b/1", "b/2", "c/1"}
		f.damaged = map[string]bool{"a/2": true, "b/1": true, "b/2": true}
		var names []string
		for topic, err := range c.ListTopics(t.Context(), "", ListOptions{}) {
			name := topic.GetConfig().GetTopic()
			names = append(names, name)
			if f.damaged[name] != errors.Is(err, smq.ErrCorrupt) || err != nil && err.Error() != name+": corrupt" {
				t.Errorf("%s: %v", name, err)
			}
		}
		if !slices.Equal(names, f.names) {
			t.Errorf("got %v", names)
		}
	})
}

func TestOffsets(t *testing.T) {
	withCluster(t, 3, 6, func(t *testing.T, f *fakeCluster, c *Client) {
		f.replace(0, 6, 0, 2, 4)
		for p := range int32(6) {
			f.fill(p, 0, int(p)+1, 10)
		}
		ends := func(partitions []int32) (offsets []int64) {
			t.Helper()
			found, err := c.Offsets(t.Context(), fakeTopic, partitions, smqpb.OffsetsRequest_END, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range found {
				offsets = append(offsets, o.Offset)
			}
			return offsets
		}
		if got := ends(nil); !slices.Equal(got, []int64{1, 2, 3, 4, 5, 6}) {
			t.Errorf("ends %v", got)
		}
		if got := ends([]int32{5, 0, 5}); !slices.Equal(got, []int64{1, 6}) {
			t.Errorf("ends %v", got)
		}
		found, err := c.Offsets(t.Context(), fakeTopic, []int32{4}, smqpb.OffsetsRequest_TIME, time.UnixMilli(2500))
		if err != nil || len(found) != 1 || found[0] != (PartitionOffset{4, 3, 3000}) {
			t.Errorf("by time: %v, %v", found, err)
		}
		// An owner that is gone is replaced, and the new one asked.
		f.ownerOf(3).kill()
		if got := ends(nil); !slices.Equal(got, []int64{1, 2, 3, 4, 5, 6}) {
			t.Errorf("ends %v", got)
		}
		if _, err := c.Offsets(t.Context(), fakeTopic, []int32{6}, smqpb.OffsetsRequest_END, time.Time{}); !errors.Is(err, smq.ErrInvalid) {
			t.Errorf("no such partition: %v", err)
		}
		for _, b := range f.brokers {
			b.kill()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := c.Offsets(ctx, fakeTopic, nil, smqpb.OffsetsRequest_END, time.Time{}); err == nil {
			t.Error("offsets from nobody")
		}
	})
}

// A topic whose segment was never assigned has no owner to ask.
func TestOffsetsOfAnUnassignedTopic(t *testing.T) {
	withCluster(t, 2, 3, func(t *testing.T, f *fakeCluster, c *Client) {
		found, err := c.Offsets(t.Context(), fakeTopic, nil, smqpb.OffsetsRequest_END, time.Time{})
		if err != nil || len(found) != 3 || found[2] != (PartitionOffset{2, 0, -1}) {
			t.Errorf("%v, %v", found, err)
		}
	})
}

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeCluster(t, 1, 1)
		defer f.close()
		registry := prometheus.NewPedanticRegistry()
		var clients []*Client
		for range 2 { // which share them
			c, err := Connect(t.Context(), Config{Masters: []string{"master:7300"}, Dial: rpc.DialOptions{Dialer: f.dial}, Registerer: registry})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			clients = append(clients, c)
		}
		for _, c := range clients {
			p := newPublisher(t, c, PublisherOptions{})
			publish(t, p, 0, 0, 10)
			mustClose(t, p)
		}
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]float64{"smq_client_acked_messages_total": 20, "smq_client_buffered_bytes": 0, "smq_client_sent_batches_total": 2}
		for _, family := range families {
			m := family.GetMetric()[0]
			if v, ok := want[family.GetName()]; ok && v != m.GetCounter().GetValue()+m.GetGauge().GetValue() {
				t.Errorf("%s is %v", family.GetName(), m)
			}
			delete(want, family.GetName())
		}
		if len(want) > 0 {
			t.Errorf("missing: %v", want)
		}
	})
}

func TestAckLevels(t *testing.T) {
	for _, l := range []AckLevel{AckDefault, AckStored, AckReplicated} {
		if got, err := ParseAckLevel(l.String()); got != l || err != nil {
			t.Errorf("%v: parsed as %v, %v", l, got, err)
		}
	}
	if _, err := ParseAckLevel("all"); !errors.Is(err, smq.ErrInvalid) {
		t.Errorf("all: %v", err)
	}
}
