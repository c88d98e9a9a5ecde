package seaweed

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	pb "github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"

	"github.com/seaweedmq/smq/lib/smq"
)

const (
	// assignAhead is how many ids are asked for at once.
	assignAhead = 16
	// assignTimeout bounds one attempt: a filer waits for volumes to grow.
	assignTimeout = 40 * time.Second
	// idLife is how long an id may wait for its use; its volume may fill up
	// meanwhile. idLifeSigned is so when the id comes with a token, which
	// expires by default after 10 s.
	idLife       = 30 * time.Second
	idLifeSigned = 3 * time.Second
)

// slot is a place where one piece may be put.
type slot struct {
	id    fileID
	path  string // of the URL to put it at
	host  string // of the volume server
	token string // authorizes the put, when the cluster asks for that
	fsync bool   // the filer's rule for the folder asks for it
}

// batch is the slots that one answer of the filer gave.
type batch struct {
	first slot
	next  int // of the unused ones
	count int
	until time.Time
	alone bool // the volume is on one server only
}

// take is the next slot of the batch.
func (b *batch) take() (slot, error) {
	s := b.first
	id, err := s.id.plus(b.next)
	if err != nil {
		return slot{}, err
	}
	if b.next > 0 {
		// The token is for the first id, and the others are named after it.
		s.path = fmt.Sprintf("%s_%d", s.path, b.next)
	}
	s.id = id
	b.next++
	return s, nil
}

// idPool keeps some slots ready, so that most uploads need not ask for one.
type idPool struct {
	assign    func(ctx context.Context, count int) (*batch, error)
	assigning chan struct{} // held by the one who asks

	mu   sync.Mutex
	held *batch
}

// take returns a slot that nobody else has.
func (p *idPool) take(ctx context.Context) (slot, error) {
	if s, ok, err := p.ready(); ok || err != nil {
		return s, err
	}
	select {
	case p.assigning <- struct{}{}:
		defer func() { <-p.assigning }()
	case <-ctx.Done():
		return slot{}, ctx.Err()
	}
	if s, ok, err := p.ready(); ok || err != nil {
		return s, err
	}
	b, err := p.assign(ctx, assignAhead)
	if err != nil {
		return slot{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = b
	return b.take()
}

func (p *idPool) ready() (slot, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held == nil || p.held.next >= p.held.count || time.Now().After(p.held.until) {
		return slot{}, false, nil
	}
	s, err := p.held.take()
	return s, err == nil, err
}

// distrust throws the slots of a volume away, after a put there has failed.
func (p *idPool) distrust(volume uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held != nil && p.held.first.id.volume == volume {
		p.held = nil
	}
}

// assign asks the filer for slots. smq.ErrNoSpace when the cluster is full.
func (s *Store) assign(ctx context.Context, count int) (*batch, error) {
	req := &pb.AssignVolumeRequest{
		Count:       int32(count),
		Path:        s.config.folder + "/",
		Collection:  s.config.collection,
		Replication: s.config.replication,
		DiskType:    s.config.disk,
	}
	var resp *pb.AssignVolumeResponse
	err := s.filers.readWithin(ctx, assignTimeout, func(ctx context.Context, client filerClient) (err error) {
		resp, err = client.AssignVolume(ctx, req)
		return err
	})
	if err != nil {
		return nil, wrap(err, "assign volume")
	}
	if m := resp.GetError(); m != "" {
		kind := smq.ErrUnavailable
		if isFull(m) {
			kind = smq.ErrNoSpace
		}
		return nil, fmt.Errorf("%w: %s", kind, m)
	}
	return newBatch(resp)
}

func newBatch(resp *pb.AssignVolumeResponse) (*batch, error) {
	id, err := parseFileID(resp.GetFileId())
	if err != nil {
		return nil, fmt.Errorf("assign volume: %w", err)
	}
	b := &batch{
		first: slot{id: id, path: "/" + resp.GetFileId(), host: resp.GetLocation().GetUrl(), token: resp.GetAuth(), fsync: resp.GetFsync()},
		count: int(max(resp.GetCount(), 1)),
		until: time.Now().Add(idLife),
		alone: len(resp.GetReplicas()) == 0 && strings.Trim(resp.GetReplication(), "0") == "",
	}
	if b.first.token != "" {
		b.until = time.Now().Add(idLifeSigned)
	}
	return b, nil
}
