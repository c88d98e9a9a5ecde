package broker

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/seaweedmq/smq/lib/background"
	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// Loads are sampled every sampleEvery, and averaged over about rateWindow.
const (
	sampleEvery = time.Second
	rateWindow  = 5 * time.Second
)

// rate is a segment's load, as an average that forgets.
type rate struct {
	mu       sync.Mutex
	last     seglog.Stats
	messages float64 // per second
	bytes    float64 // per second
}

// sample takes in what the segment holds now, dt after the last time.
func (r *rate) sample(now seglog.Stats, dt time.Duration) {
	weight := 1 - math.Exp(-dt.Seconds()/rateWindow.Seconds())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages += weight * (float64(now.Messages-r.last.Messages)/dt.Seconds() - r.messages)
	r.bytes += weight * (float64(now.Bytes-r.last.Bytes)/dt.Seconds() - r.bytes)
	r.last = now
}

func (r *rate) now() (messages, bytes float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.messages, r.bytes
}

// loads is what the broker as a whole tells the cluster of its load.
type loads struct {
	mu   sync.Mutex
	load *smqpb.Load
}

func (l *loads) get() *smqpb.Load {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.load
}

// sampleLoop samples the loads until ctx ends.
func (b *Broker) sampleLoop(ctx context.Context) {
	for last := time.Now(); background.Wait(ctx, sampleEvery) == nil; {
		now := time.Now()
		b.sample(now.Sub(last))
		last = now
	}
}

func (b *Broker) sample(dt time.Duration) {
	total := &smqpb.Load{MemoryLimit: uint64(b.cfg.Memory)}
	var oldest time.Duration
	own := b.segments()
	for _, s := range own.snapshot() {
		stats := s.log.Stats()
		s.rate.sample(stats, dt)
		messages, bytes := s.rate.now()
		total.Segments++
		total.MessagesPerSecond += messages
		total.BytesPerSecond += bytes
		total.MemoryUsed += uint64(stats.Buffered)
		oldest = max(oldest, stats.OldestUnsent)
		if stats.OldestUnsent > b.cfg.StuckAfter {
			own.giveUp(s)
		}
	}
	b.metrics.segments.Set(float64(total.Segments))
	b.metrics.flushLag.Set(oldest.Seconds())
	b.loads.mu.Lock()
	defer b.loads.mu.Unlock()
	b.loads.load = total
}

// status describes the segment.
func (s *segment) status() *smqpb.SegmentStatus {
	stats, i := s.log.Stats(), s.log.Ident()
	messages, bytes := s.rate.now()
	storeError := ""
	if err := troubleOf(stats); err != nil {
		storeError = err.Error()
		if s.log.Err() == nil {
			stats.State = "stuck"
		}
	}
	return &smqpb.SegmentStatus{
		Topic: i.Topic.String(), TopicId: string(i.TopicID), Segment: uint64(i.Segment), Lo: i.Range.Lo, Hi: i.Range.Hi,
		State: stats.State, Chunks: stats.Chunks, Bytes: stats.Bytes, Messages: stats.Messages, Buffered: uint64(stats.Buffered),
		MessagesPerSecond: messages, BytesPerSecond: bytes,
		OldestUnstoredMs: uint64(stats.OldestUnsent.Milliseconds()), StoreError: storeError,
	}
}
