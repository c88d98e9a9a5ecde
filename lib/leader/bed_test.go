package leader_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/leader"
	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
	"github.com/seaweedmq/smq/lib/store"
	"github.com/seaweedmq/smq/lib/store/mem"
)

// bed is a cluster without network: one store, brokers that are a map of open
// logs each, and the leader under test.
type bed struct {
	t      *testing.T
	st     *mem.Store
	shared *seglog.Shared
	leader *leader.Leader
	term   uint64

	mu    sync.Mutex
	peers map[string]*peer // by address
	acked []message
}

// message is one that a publisher has got an ack for.
type message struct {
	topic     smq.TopicID
	partition smq.Partition
	offset    smq.Offset
	value     string
}

func newBed(t *testing.T, brokers ...string) *bed {
	b := &bed{t: t, st: mem.New(), shared: seglog.NewShared(seglog.SharedOptions{}), peers: make(map[string]*peer)}
	for _, name := range brokers {
		p := &peer{bed: b, id: id(name), address: name + ":7310", logs: make(map[string]*seglog.Log)}
		b.peers[p.address] = p
	}
	t.Cleanup(func() {
		if b.leader != nil {
			b.leader.Stop()
		}
		for _, p := range b.peers {
			p.crash()
		}
	})
	return b
}

// id makes a broker id of a short name.
func id(name string) smq.BrokerID { return smq.BrokerID(fmt.Sprintf("%016x", name)) }

// lead starts the next leader on a handle of the store, after stopping the last
// one.
func (b *bed) lead(st store.Store) *leader.Leader {
	if b.leader != nil {
		b.leader.Stop()
	}
	b.term++
	b.leader = leader.Start(leader.Config{
		Store: st, Self: id(fmt.Sprint("leader", b.term)), Term: b.term,
		Brokers: b.brokers(), Peer: b.peer,
	})
	return b.leader
}

func (b *bed) brokers() []layout.Broker {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []layout.Broker
	for _, p := range b.peers {
		if p.gone {
			continue
		}
		all = append(all, layout.Broker{ID: p.id, Address: p.address, Dead: p.dead, Draining: p.draining, MessagesPerSecond: p.load.Messages, BytesPerSecond: p.load.Bytes})
	}
	slices.SortFunc(all, func(x, y layout.Broker) int { return strings.Compare(string(x.ID), string(y.ID)) })
	return all
}

func (b *bed) peer(_ context.Context, address string) (smqpb.BrokerClient, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.peers[address]; p != nil && !p.dead {
		return p, nil
	}
	return nil, fmt.Errorf("%s: %w", address, smq.ErrUnavailable)
}

func (b *bed) at(name string) *peer { return b.peers[name+":7310"] }

// kill makes the broker dead, and tells the leader.
func (b *bed) kill(name string) {
	b.at(name).crash()
	b.mu.Lock()
	b.at(name).dead = true
	b.mu.Unlock()
	if b.leader != nil {
		b.leader.SetBrokers(b.brokers())
	}
}

// expire makes the broker dead for good, and tells the leader.
func (b *bed) expire(name string) {
	b.mu.Lock()
	b.at(name).gone = true
	b.mu.Unlock()
	b.kill(name)
}

// drain has the broker take nothing more, and tells the leader.
func (b *bed) drain(name string) {
	b.mu.Lock()
	b.at(name).draining = true
	b.mu.Unlock()
	if b.leader != nil {
		b.leader.SetBrokers(b.brokers())
	}
}

// peer is a broker as the leader sees it.
type peer struct {
	smqpb.BrokerClient
	bed      *bed
	id       smq.BrokerID
	address  string
	dead     bool
	gone     bool // its lease has run out, too
	draining bool
	drained  int
	reports  uint64 // of loads
	load     layout.Load
	// beforeSeal, when set, is called before the broker seals a segment as
	// planned.
	beforeSeal func(ctx context.Context, id smq.SegmentID)

	mu   sync.Mutex
	logs map[string]*seglog.Log
}

func logKey(topic smq.TopicID, segment smq.SegmentID) string { return fmt.Sprint(topic, "/", segment) }

// open has the broker open a segment that the layout gives to it.
func (p *peer) open(c catalog.Config, s layout.Segment) (*seglog.Log, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := logKey(c.ID, s.ID)
	if l := p.logs[k]; l != nil {
		return l, nil
	}
	l, err := seglog.Open(context.Background(), seglog.Config{
		Store: p.bed.st, Ident: c.Ident(s.ID, s.Range), Predecessors: catalog.Seals(s.Predecessors),
		Broker: p.id, Shared: p.bed.shared,
	})
	if err == nil {
		p.logs[k] = l
	}
	return l, err
}

func (p *peer) crash() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.logs {
		l.Close()
	}
}

func (p *peer) SealSegment(ctx context.Context, req *smqpb.SealSegmentRequest, _ ...grpc.CallOption) (*smqpb.SealSegmentResponse, error) {
	if p.beforeSeal != nil {
		p.beforeSeal(ctx, smq.SegmentID(req.GetSegment()))
	}
	p.mu.Lock()
	l := p.logs[logKey(smq.TopicID(req.GetTopicId()), smq.SegmentID(req.GetSegment()))]
	p.mu.Unlock()
	if l == nil {
		return nil, smq.ErrNotOwner
	}
	seal, err := l.Seal(ctx)
	return &smqpb.SealSegmentResponse{SealChunk: seal.Chunk, SealHash: seal.Hash}, err
}

func (p *peer) Drain(context.Context, *smqpb.DrainRequest, ...grpc.CallOption) (*smqpb.DrainResponse, error) {
	p.drained++
	return &smqpb.DrainResponse{SegmentsLeft: int32(len(p.logs))}, nil
}

// result is a sink for one batch.
type result chan seglog.Ack

func (r result) Acked(acks []seglog.Ack) {
	for _, a := range acks {
		r <- a
	}
}

// publish appends a message to a partition by way of its owner, as lookups
// name it, until it is acked.
func (b *bed) publish(topicName string, p smq.Partition, value string) {
	b.t.Helper()
	if err := b.tryPublish(topicName, p, value); err != nil {
		b.t.Fatal(err)
	}
}

// tryPublish is publish; it fails when a lookup does.
func (b *bed) tryPublish(topicName string, p smq.Partition, value string) error {
	topic, err := smq.ParseTopic(topicName)
	if err != nil {
		return err
	}
	var stale smq.SegmentID
	for range 10 {
		resp, err := b.leader.Lookup(b.t.Context(), &smqpb.LookupRequest{
			Topic: topicName, StaleSegment: uint64(stale), Assign: true, Partitions: []int32{p},
		})
		if err != nil {
			return err
		}
		lay, err := layout.FromProto(resp.GetLayout())
		if err != nil {
			return err
		}
		s, _ := lay.Find(p)
		c := catalog.Config{Topic: topic, ID: smq.TopicID(resp.GetConfig().GetTopicId())}
		ack := b.appendTo(c, s, p, value)
		if ack.Err == nil {
			b.acked = append(b.acked, message{c.ID, p, ack.BaseOffset, value})
			return nil
		}
		if !errors.Is(ack.Err, smq.ErrSegmentSealed) {
			return ack.Err
		}
		stale = s.ID
	}
	return fmt.Errorf("publish %q: every segment is sealed", value)
}

func (b *bed) appendTo(c catalog.Config, s layout.Segment, p smq.Partition, value string) seglog.Ack {
	owner := b.peers[s.Owner.Address]
	if owner == nil || owner.dead {
		return seglog.Ack{Err: smq.ErrUnavailable}
	}
	l, err := owner.open(c, s)
	if err != nil {
		return seglog.Ack{Err: err}
	}
	builder := record.NewBuilder(record.None)
	if err := builder.Append(time.Now().UnixMilli(), nil, []byte(value), nil); err != nil {
		b.t.Fatal(err)
	}
	bytes, err := builder.Finish(nil, -1, -1, -1)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := b.shared.Reserve(context.Background(), int64(len(bytes))); err != nil {
		b.t.Fatal(err)
	}
	sink := make(result, 1)
	l.Append([]seglog.Batch{{ID: 1, Partition: p, Bytes: bytes}}, sink)
	return <-sink
}

func (b *bed) lookup(topicName string, stale smq.SegmentID, partitions ...smq.Partition) *smqpb.LookupResponse {
	b.t.Helper()
	resp, err := b.leader.Lookup(b.t.Context(), &smqpb.LookupRequest{
		Topic: topicName, StaleSegment: uint64(stale), Assign: true, Partitions: partitions,
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return resp
}

func (b *bed) create(topicName string, partitions int32) catalog.Config {
	b.t.Helper()
	return b.createReplicated(topicName, partitions, 1)
}

func (b *bed) createReplicated(topicName string, partitions, replicas int32) catalog.Config {
	b.t.Helper()
	resp, err := b.leader.CreateTopic(b.t.Context(), &smqpb.CreateTopicRequest{Topic: topicName, Partitions: partitions, Replicas: replicas})
	if err != nil {
		b.t.Fatal(err)
	}
	topic, _ := smq.ParseTopic(topicName)
	return catalog.Config{Topic: topic, ID: smq.TopicID(resp.GetConfig().GetTopicId()), Partitions: partitions}
}

// check reads the topic whole from the store: nothing is wrong with it, and
// every message acked in this incarnation is there.
func (b *bed) check(topicName string) catalog.Verification {
	b.t.Helper()
	topic, _ := smq.ParseTopic(topicName)
	v, err := catalog.Verify(b.t.Context(), b.st, topic, func(seglog.Report) {})
	if err != nil || len(v.Problems) > 0 {
		b.t.Fatalf("%v %q", err, v.Problems)
	}
	want := 0
	for _, m := range b.acked {
		if m.topic == v.Config.ID {
			want++
			b.checkMessage(v.Config, m)
		}
	}
	if int(v.Messages) < want {
		b.t.Fatalf("topic %v holds %d messages, %d were acked", topic, v.Messages, want)
	}
	return v
}

// checkMessage finds the message in the segment that holds its offset.
func (b *bed) checkMessage(c catalog.Config, m message) {
	b.t.Helper()
	h, err := catalog.Extend(b.t.Context(), b.st, c.Topic, c.ID, layout.History{})
	if err != nil {
		b.t.Fatal(err)
	}
	shared := seglog.NewShared(seglog.SharedOptions{})
	for _, s := range h.Chain(m.partition) {
		src, err := seglog.OpenSealed(b.t.Context(), b.st, c.Ident(s.Segment, s.Range), shared)
		if err != nil {
			b.t.Fatal(err)
		}
		if _, end, err := src.Offsets(b.t.Context(), m.partition); err == nil && m.offset < end {
			b.checkValue(src, m)
			return
		}
	}
	live, _ := h.Last.Find(m.partition)
	if p := b.peers[live.Owner.Address]; p != nil && p.logs[logKey(c.ID, live.ID)] != nil {
		b.checkValue(p.logs[logKey(c.ID, live.ID)], m)
		return
	}
	b.t.Fatalf("no segment holds partition %d, offset %d", m.partition, m.offset)
}

func (b *bed) checkValue(src seglog.Source, m message) {
	b.t.Helper()
	cursor := seglog.NewCursor(src)
	cursor.Add(m.partition, m.offset)
	d, err := cursor.Next(b.t.Context(), 1)
	if err != nil || len(d.Batches) == 0 {
		b.t.Fatalf("partition %d, offset %d: %v", m.partition, m.offset, err)
	}
	var r record.Reader
	if err := r.Reset(d.Batches[0].Bytes); err != nil {
		b.t.Fatal(err)
	}
	if rec, ok := r.Next(); !ok || rec.Offset != m.offset || string(rec.Value) != m.value {
		b.t.Fatalf("partition %d, offset %d holds %q at %d, acked was %q", m.partition, m.offset, rec.Value, rec.Offset, m.value)
	}
}
