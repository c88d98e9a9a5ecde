package leader_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

func TestDeleteAndRecreate(t *testing.T) {
	bubble(t, []string{"a"}, func(b *bed) {
		first := b.create("t", 8)
		b.publish("t", 3, "old")
		_, err := b.leader.CreateTopic(b.t.Context(), &smqpb.CreateTopicRequest{Topic: "t"})
		wantErr(b.t, "create again", err, smq.ErrExists)
		var log = b.at("a").logs[logKey(first.ID, 2)]
		if _, err := b.leader.DeleteTopic(b.t.Context(), &smqpb.DeleteTopicRequest{Topic: "t"}); err != nil {
			b.t.Fatal(err)
		}
		<-log.Done() // its owner has stopped too
		_, err = b.leader.Lookup(b.t.Context(), &smqpb.LookupRequest{Topic: "t", Assign: true})
		wantErr(b.t, "lookup", err, smq.ErrNotFound)
		_, err = b.leader.DeleteTopic(b.t.Context(), &smqpb.DeleteTopicRequest{Topic: "t"})
		wantErr(b.t, "delete again", err, smq.ErrNotFound)
		_, err = b.leader.DeleteTopic(b.t.Context(), &smqpb.DeleteTopicRequest{Topic: "t", TopicId: string(first.ID)})
		wantErr(b.t, "delete the same again", err, nil)

		second := b.create("t", 4)
		b.publish("t", 3, "new")
		_, err = b.leader.DeleteTopic(b.t.Context(), &smqpb.DeleteTopicRequest{Topic: "t", TopicId: string(first.ID)})
		wantErr(b.t, "delete the first once more", err, smq.ErrNotFound)
		_, err = b.report(first, 2, layout.Roll, "a")
		wantErr(b.t, "report of the first", err, smq.ErrNotFound)
		if v := b.check("t"); v.Config.ID != second.ID || v.Messages != 1 {
			b.t.Fatalf("%+v", v)
		}
		// The sweep that a leader begins with may have read of the first one when it
		// was there, and write its first layout when it is not. The next one sees to that.
		<-time.After(11 * time.Minute)
		ids, err := catalog.Incarnations(b.t.Context(), b.st, first.Topic)
		if err != nil || len(ids) != 1 {
			b.t.Fatalf("left: %v, %v", ids, err)
		}
	})
}

func TestCreateRefuses(t *testing.T) {
	bubble(t, nil, func(b *bed) {
		for _, req := range []*smqpb.CreateTopicRequest{
			{}, {Topic: "."}, {Topic: "t", Partitions: -1}, {Topic: "t", Partitions: smq.MaxPartitions + 1}, {Topic: "t", Key: "whim"},
		} {
			_, err := b.leader.CreateTopic(b.t.Context(), req)
			wantErr(b.t, req.String(), err, smq.ErrInvalid)
		}
	})
}

func TestListTopics(t *testing.T) {
	bubble(t, []string{"a"}, func(b *bed) {
		var want []string
		for _, ns := range []string{"alpha", "beta"} {
			for i := range 7 {
				name := fmt.Sprintf("%s/t%d", ns, i)
				b.create(name, 8)
				if i == 3 {
					if _, err := b.leader.DeleteTopic(b.t.Context(), &smqpb.DeleteTopicRequest{Topic: name}); err != nil {
						b.t.Fatal(err)
					}
					continue
				}
				want = append(want, name)
			}
		}
		for limit := range int32(14) {
			for _, namesOnly := range []bool{false, true} {
				if got := b.list("", limit, namesOnly); fmt.Sprint(got) != fmt.Sprint(want) {
					b.t.Fatalf("pages of %d: %v", limit, got)
				}
			}
		}
		if got := b.list("beta", 2, false); fmt.Sprint(got) != fmt.Sprint(want[6:]) {
			b.t.Fatalf("beta: %v", got)
		}
		if got := b.list("gamma", 2, false); len(got) != 0 {
			b.t.Fatalf("gamma: %v", got)
		}
		_, err := b.leader.ListTopics(b.t.Context(), &smqpb.ListTopicsRequest{Namespace: "alpha", After: "beta/t1"})
		wantErr(b.t, "a page of another namespace", err, smq.ErrInvalid)
	})
}

// list goes through all pages.
func (b *bed) list(namespace string, limit int32, namesOnly bool) (names []string) {
	b.t.Helper()
	after := ""
	for {
		resp, err := b.leader.ListTopics(b.t.Context(), &smqpb.ListTopicsRequest{Namespace: namespace, After: after, Limit: limit, NamesOnly: namesOnly})
		if err != nil {
			b.t.Fatal(err)
		}
		for _, s := range resp.GetTopics() {
			after = s.GetConfig().GetTopic()
			names = append(names, after)
		}
		if !resp.GetMore() {
			return names
		}
		if limit > 0 && len(resp.GetTopics()) != int(limit) {
			b.t.Fatalf("a page of %d, %d were asked for", len(resp.GetTopics()), limit)
		}
	}
}

func TestDrainBroker(t *testing.T) {
	bubble(t, []string{"a", "b"}, func(b *bed) {
		resp, err := b.leader.DrainBroker(b.t.Context(), &smqpb.DrainBrokerRequest{Broker: string(id("b"))})
		if err != nil || b.at("b").drained != 1 || resp.GetDone() {
			b.t.Fatalf("%v, %v", resp, err)
		}
		_, err = b.leader.DrainBroker(b.t.Context(), &smqpb.DrainBrokerRequest{Broker: string(id("c"))})
		wantErr(b.t, "an unknown broker", err, smq.ErrNotFound)
	})
}
