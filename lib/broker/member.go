package broker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/seaweedmq/smq/lib/background"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// Times of the membership.
const (
	renewEvery   = 500 * time.Millisecond
	rejoinAfter  = 100 * time.Millisecond // doubles up to
	rejoinSoon   = 200 * time.Millisecond // while there is a lease to keep, and then
	rejoinAtMost = time.Second
	leaveTimeout = time.Second
)

// member is the broker's membership in the cluster: its id, its lease, and what
// the grants tell.
type member struct {
	b      *Broker
	wake   chan struct{} // holds a token when a heartbeat is due at once
	joined chan struct{} // closed by the first grant
	// rejoined holds a token when the broker is back after it was out of touch.
	rejoined chan struct{}
	// moved holds a token when another master than the one that is watched leads.
	moved chan struct{}
	left  chan struct{} // closed when the lease is given back

	mu      sync.Mutex
	id      smq.BrokerID
	join    uint64        // number of the registration; 0 before
	until   time.Duration // end of the lease, by the broker's clock
	granted bool          // there has been a grant
	heard   time.Duration // when the latest one came
	leader  *smqpb.LeaderInfo
	brokers []layout.Broker
	leaving bool
	// watching: what the masters tell at once is heard. What grants tell of the
	// brokers may then be older.
	watching bool
	changed  chan struct{} // holds a token when leader or brokers have changed
}

func newMember(b *Broker, id smq.BrokerID) *member {
	return &member{
		b: b, id: id,
		wake: make(chan struct{}, 1), changed: make(chan struct{}, 1),
		joined: make(chan struct{}), rejoined: make(chan struct{}, 1), moved: make(chan struct{}, 1), left: make(chan struct{}),
	}
}

// run stays in the cluster until the broker has left it or ctx ends.
func (m *member) run(ctx context.Context) {
	wait := rejoinAfter
	for ctx.Err() == nil {
		start := m.b.clock()
		err := m.stay(ctx)
		if m.isLeaving() {
			close(m.left)
			return
		}
		if errors.Is(err, smq.ErrConflict) {
			m.reborn(err)
			continue
		}
		m.b.log.Warn("not in the cluster at the moment, joining again", "err", err)
		if m.b.clock()-start > rejoinAtMost {
			wait = rejoinAfter
		}
		if background.Wait(ctx, wait) != nil {
			return
		}
		wait = min(2*wait, m.rejoinWait())
	}
}

// rejoinWait is the longest wait before the broker joins again. The next master leads
// within about a second, and half a second of the lease may be over when the last one
// dies: what is left of it is not to be slept away.
func (m *member) rejoinWait() time.Duration {
	if m.leased() {
		return rejoinSoon
	}
	return rejoinAtMost
}

// stay joins at the leading master and renews the lease until that breaks.
func (m *member) stay(ctx context.Context) error {
	master, addr, err := m.b.cfg.Cluster.Master(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var others sync.WaitGroup
	others.Go(func() {
		if err := m.doubt(ctx, addr); err != nil {
			cancel(err)
			token(m.moved)
		}
	})
	err = m.stayAt(ctx, master)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	cancel(nil)
	others.Wait()
	return fmt.Errorf("member of the cluster by master %s: %w", addr, err)
}

// stayAt joins at a master and renews the lease until that breaks.
func (m *member) stayAt(ctx context.Context, master smqpb.MasterClient) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := master.Join(ctx)
	if err != nil {
		return fmt.Errorf("join: %w", err)
	}
	var (
		sent   sendTimes
		sender sync.WaitGroup
	)
	sender.Go(func() {
		m.renew(ctx, stream, &sent)
		if m.isLeaving() {
			_ = background.Wait(ctx, leaveTimeout) // for the master to end the stream
			cancel()
		}
	})
	err = m.receive(stream, &sent) // ends when the stream does, whoever ends it
	cancel()
	sender.Wait()
	return err
}

// joinStream is the broker's end of the stream.
type joinStream interface {
	Send(*smqpb.Heartbeat) error
	Recv() (*smqpb.Grant, error)
}

// renew sends heartbeats until the broker leaves or the stream ends.
func (m *member) renew(ctx context.Context, stream joinStream, sent *sendTimes) {
	ticker := time.NewTicker(renewEvery)
	defer ticker.Stop()
	for sequence := uint64(1); ; sequence++ {
		beat := m.heartbeat(sequence)
		sent.note(sequence, m.b.clock())
		if stream.Send(beat) != nil || beat.Leave {
			return // the receiver learns why
		}
		select {
		case <-ticker.C:
		case <-m.wake:
		case <-ctx.Done():
			return
		}
	}
}

func (m *member) heartbeat(sequence uint64) *smqpb.Heartbeat {
	m.mu.Lock()
	defer m.mu.Unlock()
	beat := &smqpb.Heartbeat{
		Sequence: sequence, Draining: m.b.draining.Load(), Load: m.b.loads.get(), Leave: m.leaving,
	}
	if sequence == 1 {
		c := &m.b.cfg
		beat.Hello = &smqpb.Hello{
			Broker: string(m.id), Address: c.Advertise, HttpAddress: c.HTTPAddress,
			Rack: c.Rack, Version: c.Version, Join: m.join,
		}
	}
	return beat
}

func (m *member) receive(stream joinStream, sent *sendTimes) error {
	for {
		grant, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%w: the master ended the stream", smq.ErrUnavailable)
		}
		if err != nil {
			return err
		}
		m.take(grant, sent)
	}
}

// take takes in a grant.
func (m *member) take(g *smqpb.Grant, sent *sendTimes) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at, ok := sent.take(g.GetSequence()); ok {
		m.until = max(m.until, at+time.Duration(g.GetLeaseMs())*time.Millisecond)
	}
	m.join, m.heard = g.GetJoin(), m.b.clock()
	if !m.granted {
		m.granted = true
		close(m.joined)
	} else if g.GetSequence() == 1 {
		token(m.rejoined)
	}
	m.follow(g.GetLeader())
	if len(g.GetBrokers()) > 0 && !m.watching {
		m.brokers = candidates(g.GetBrokers())
	}
	m.tell()
}

// follow takes in who leads; of two leaders the later one. m.mu is held.
func (m *member) follow(l *smqpb.LeaderInfo) {
	if l.GetTerm() >= m.leader.GetTerm() {
		m.leader = l
	}
}

// tell has the change noticed. m.mu is held.
func (m *member) tell() { token(m.changed) }

// token puts a token into a channel that holds one.
func token(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // one is there already
	}
}

// candidates are the brokers as the choice of owners sees them.
func candidates(infos []*smqpb.BrokerInfo) []layout.Broker {
	brokers := make([]layout.Broker, len(infos))
	for i, b := range infos {
		brokers[i] = layout.Broker{
			ID: smq.BrokerID(b.GetId()), Address: b.GetAddress(), Rack: b.GetRack(),
			Segments:          int(b.GetLoad().GetSegments()),
			MessagesPerSecond: b.GetLoad().GetMessagesPerSecond(),
			BytesPerSecond:    b.GetLoad().GetBytesPerSecond(),
			Dead:              b.GetSilent(), Draining: b.GetDraining(),
		}
	}
	return brokers
}

// reborn starts over with a fresh id: the lease of the present one has run out
// at the masters.
func (m *member) reborn(why error) {
	fresh := smq.NewBrokerID()
	m.mu.Lock()
	old := m.id
	m.id, m.join, m.until = fresh, 0, 0
	m.mu.Unlock()
	m.b.log.Warn("the lease has run out, starting over with a fresh id", "old", old, "id", fresh, "err", why)
	m.b.begin(fresh)
}

// leave gives the lease back, once, and waits for that.
func (m *member) leave(ctx context.Context) {
	m.mu.Lock()
	m.leaving = true
	m.mu.Unlock()
	m.beat()
	select {
	case <-m.left:
	case <-ctx.Done():
	}
}

func (m *member) isLeaving() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.leaving
}

// beat has a heartbeat sent at once.
func (m *member) beat() { token(m.wake) }

// leased reports whether the broker's lease is valid by its own clock.
func (m *member) leased() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.granted && m.b.clock() < m.until
}

// cluster is the state as the grants told it last.
func (m *member) cluster() (self smq.BrokerID, leader *smqpb.LeaderInfo, brokers []layout.Broker) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.id, m.leader, m.brokers
}

// sendTimes remembers when the last heartbeats were sent: a lease counts from
// then, not from when its grant came.
type sendTimes struct {
	mu    sync.Mutex
	times [64]sendTime
}

type sendTime struct {
	sequence uint64
	at       time.Duration
}

func (s *sendTimes) note(sequence uint64, at time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.times[sequence%uint64(len(s.times))] = sendTime{sequence, at}
}

// take returns when the heartbeat was sent, unless that is forgotten.
func (s *sendTimes) take(sequence uint64) (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.times[sequence%uint64(len(s.times))]
	return t.at, t.sequence == sequence && sequence > 0
}
