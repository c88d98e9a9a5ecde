package client

import (
	"fmt"

	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// maxGaps is how often in a row a broker may leave messages of a partition out
// before the partition counts as damaged.
const maxGaps = 3

// received takes a frame in. An error means that the frame makes no sense.
func (s *Subscriber) received(f *feed, head *smqpb.DeliverHead, payload []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(head.GetCaughtUp()) != len(head.GetCaughtUpOffsets()) {
		return fmt.Errorf("%w frame: %d partitions and %d offsets caught up", smq.ErrInvalid, len(head.GetCaughtUp()), len(head.GetCaughtUpOffsets()))
	}
	f.quiet = false
	if !f.healthy {
		f.healthy = true
		s.found()
	}
	batches := head.GetBatches()
	for len(batches) > 0 {
		n, size := 0, 0 // a run of batches of one partition
		for n < len(batches) && batches[n].GetPartition() == batches[0].GetPartition() {
			size += int(batches[n].GetSize())
			n++
		}
		if size > len(payload) {
			return fmt.Errorf("%w frame: batches of %d bytes, %d are there", smq.ErrInvalid, size, len(payload))
		}
		if in := s.served(f, batches[0].GetPartition()); in != nil {
			if err := s.takeRun(f, in, payload[:size:size]); err != nil {
				return err
			}
		}
		batches, payload = batches[n:], payload[size:]
	}
	if len(payload) > 0 {
		return fmt.Errorf("%w frame: %d bytes behind the last batch", smq.ErrInvalid, len(payload))
	}
	for i, p := range head.GetCaughtUp() {
		if in := s.served(f, p); in != nil && in.next == head.GetCaughtUpOffsets()[i] {
			in.progress = true
			s.router.works(s.router.find(p))
			s.push(item{in: in, next: in.next, caughtUp: true})
		}
	}
	for _, end := range head.GetEnds() {
		if in := s.served(f, end.GetPartition()); in != nil {
			s.partitionEnded(in, rpc.FromErrorInfo(end.GetError()))
		}
	}
	return nil
}

// served is the partition, if the feed serves it; what else comes is left over
// from before it was told to stop.
func (s *Subscriber) served(f *feed, partition int32) *intake {
	if partition < 0 || partition >= s.topic.GetPartitions() {
		return nil
	}
	if in := s.parts.get(partition); in != nil && in.feed == f && in.adding == nil {
		return in
	}
	return nil
}

// takeRun queues those of a partition's batches, which lie next to each other,
// that follow what was received; that may be all.
func (s *Subscriber) takeRun(f *feed, in *intake, data []byte) error {
	start, at := 0, 0 // data[start:at] is to be queued
	from := in.next
	for at < len(data) {
		batch, h, err := cutBatch(data[at:])
		if err == nil {
			err = h.Check()
		}
		if err != nil {
			s.offer(in, data[start:at], from)
			s.partitionFailed(in, err)
			return nil
		}
		if h.BaseOffset > in.next {
			s.offer(in, data[start:at], from)
			return s.gap(f, in, h.BaseOffset)
		}
		at += len(batch)
		if h.LastOffset() < in.next { // it came before
			s.offer(in, data[start:at-len(batch)], from)
			start, from = at, in.next
			continue
		}
		in.next = h.LastOffset() + 1
		in.leftover, in.gaps = nil, 0
	}
	s.offer(in, data[start:at], from)
	return nil
}

// offer queues batches that end before the next offset to be received.
func (s *Subscriber) offer(in *intake, data []byte, from int64) {
	if len(data) == 0 {
		return
	}
	in.progress = true
	s.router.works(s.router.find(in.id))
	s.push(item{in: in, data: data, from: from, next: in.next})
}

// gap deals with a batch that does not follow what was received. After a seek
// it belongs to what was asked for before; otherwise the broker has left
// something out, and is asked again, through another stream.
func (s *Subscriber) gap(f *feed, in *intake, base int64) error {
	if in.leftover == f {
		return nil
	}
	err := fmt.Errorf("%w partition %d: offset %d came, %d was due", smq.ErrCorrupt, in.id, base, in.next)
	if in.gaps++; in.gaps >= maxGaps {
		s.partitionFailed(in, err)
		return nil
	}
	return err
}

// partitionEnded goes on with a partition that its broker has stopped serving.
func (s *Subscriber) partitionEnded(in *intake, err error) {
	in.feed = nil
	rt := s.router.find(in.id)
	switch {
	case isAny(err, smq.ErrOffsetOutOfRange, smq.ErrCorrupt, smq.ErrInvalid, smq.ErrTooLarge):
		s.partitionFailed(in, err)
		return
	case err != nil && !ownerMoved(err):
		s.router.cool(rt, err)
	case rt.segment == in.segment:
		s.router.block(rt, err)
	case !in.progress: // the layout has moved on, and not far enough
		s.router.cool(rt, err)
	}
	s.schedule(in)
}

// partitionFailed ends a partition with an error, which Poll returns behind
// what was received of it.
func (s *Subscriber) partitionFailed(in *intake, err error) {
	s.recall(in)
	s.push(item{in: in, next: in.next, err: &PartitionError{Partition: in.id, Offset: in.next, Err: err}})
	in.failed = true
}
