package master

import (
	"fmt"
	"io"
	"net"
	"time"

	"google.golang.org/grpc"

	"github.com/seaweedmq/smq/lib/registry"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// maxWord bounds what a broker says of itself, in bytes: the registry keeps it.
const maxWord = 255

// Join implements smqpb.MasterServer.
func (m *Master) Join(stream grpc.BidiStreamingServer[smqpb.Heartbeat, smqpb.Grant]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	if err := checkHello(first.GetHello()); err != nil {
		return err
	}
	r, err := m.leading()
	if err != nil {
		return err
	}
	b := &joined{reign: r, id: smq.BrokerID(first.GetHello().GetBroker()), stream: stream}
	if b.join, err = r.register(first.GetHello()); err != nil {
		return err
	}
	if b.session = r.leases.open(b.id, m.config.Clock()); b.session == nil {
		return errExpired(b.id)
	}
	m.hub.announce(true)
	defer func() {
		if r.leases.close(b.id, b.session, m.config.Clock()) {
			m.logger.Info("a broker's connection broke off", "broker", b.id)
			m.hub.announce(true)
			// The next look at the leases may be most of a tick late.
			time.AfterFunc(silentAfter, func() { signal(r.dirty) })
		}
	}()
	return b.serve(first)
}

func checkHello(h *smqpb.Hello) error {
	if h == nil {
		return fmt.Errorf("%w heartbeat: the first one needs a hello", smq.ErrInvalid)
	}
	if h.GetBroker() == "" {
		return fmt.Errorf("%w hello: it names no broker", smq.ErrInvalid)
	}
	for _, word := range []string{h.GetBroker(), h.GetHttpAddress(), h.GetRack(), h.GetVersion()} {
		if len(word) > maxWord {
			return fmt.Errorf("%w hello: %.20q… is longer than %d bytes", smq.ErrInvalid, word, maxWord)
		}
	}
	return checkAddress("the broker's address", h.GetAddress())
}

func checkAddress(what, addr string) error {
	if _, _, err := net.SplitHostPort(addr); err != nil || len(addr) > maxWord {
		return fmt.Errorf("%w: %s %.100q is not a host:port", smq.ErrInvalid, what, addr)
	}
	return nil
}

func errExpired(id smq.BrokerID) error {
	return fmt.Errorf("%w: the lease of broker %s has run out; it must start over with a fresh id", smq.ErrConflict, id)
}

// register records the broker, unless it is recorded, and returns the number of
// its registration.
func (r *reign) register(h *smqpb.Hello) (uint64, error) {
	id := smq.BrokerID(h.GetBroker())
	var known registry.Broker
	r.m.fsm.view(func(s *registry.State) { known, _ = s.Broker(id) })
	if known.ID == id && known.Address == h.GetAddress() {
		return known.Join, nil
	}
	result, err := r.apply(registry.Command{Register: &registry.Register{
		ID: id, Address: h.GetAddress(), HTTPAddress: h.GetHttpAddress(), Rack: h.GetRack(), Version: h.GetVersion(),
		Join: h.GetJoin(), JoinedMS: time.Now().UnixMilli(),
	}})
	if err != nil {
		return 0, fmt.Errorf("register broker %s: %w", id, err)
	}
	r.m.logger.Info("a broker joined", "broker", id, "address", h.GetAddress())
	return result.Join, nil
}

// joined is a broker's stream.
type joined struct {
	reign   *reign
	id      smq.BrokerID
	join    uint64
	session *session
	stream  grpc.BidiStreamingServer[smqpb.Heartbeat, smqpb.Grant]

	told   bool   // the brokers, in a grant
	toldAt uint64 // the version that they were of
	grants uint64 // sent
}

// serve handles heartbeats and sends grants until the stream, the lease or the
// reign ends.
func (b *joined) serve(first *smqpb.Heartbeat) error {
	heartbeats, ended := make(chan *smqpb.Heartbeat), make(chan error, 1)
	go b.receive(heartbeats, ended)
	left, err := b.handle(first)
	for err == nil && !left {
		select {
		case h := <-heartbeats:
			left, err = b.handle(h)
		case sequence := <-b.session.granted:
			err = b.stream.Send(b.grant(sequence))
		case err = <-ended:
			if err == io.EOF {
				return nil
			}
		case <-b.session.refused:
			err = errExpired(b.id)
		case <-b.reign.done:
			err = &rpc.NotLeaderError{Address: b.reign.m.leadingAddress()}
		}
	}
	return err
}

// receive passes heartbeats on. It ends with the stream, which ends when Join
// returns.
func (b *joined) receive(to chan<- *smqpb.Heartbeat, ended chan<- error) {
	for {
		h, err := b.stream.Recv()
		if err != nil {
			ended <- err
			return
		}
		select {
		case to <- h:
		case <-b.stream.Context().Done():
			return
		}
	}
}

// handle acts on a heartbeat. It reports whether the broker has left.
func (b *joined) handle(h *smqpb.Heartbeat) (left bool, err error) {
	if h.GetLeave() {
		return true, b.leave()
	}
	if h.GetDraining() {
		if err := b.drain(); err != nil {
			return false, err
		}
	}
	if h.GetLoad() != nil {
		b.reign.leases.setLoad(b.id, h.GetLoad())
		signal(b.reign.loads)
	}
	b.reign.request(b.session, b.id, h.GetSequence())
	return false, nil
}

func (b *joined) leave() error {
	if _, err := b.reign.apply(registry.Command{Leave: &registry.BrokerRef{ID: b.id}}); err != nil {
		return fmt.Errorf("remove broker %s: %w", b.id, err)
	}
	b.reign.leases.remove(b.id)
	b.reign.m.logger.Info("a broker left", "broker", b.id)
	return nil
}

func (b *joined) drain() error {
	var known registry.Broker
	b.reign.m.fsm.view(func(s *registry.State) { known, _ = s.Broker(b.id) })
	if known.Draining {
		return nil
	}
	if _, err := b.reign.apply(registry.Command{Drain: &registry.BrokerRef{ID: b.id}}); err != nil {
		return fmt.Errorf("drain broker %s: %w", b.id, err)
	}
	return nil
}

// grant is what a broker learns with every renewal of its lease.
func (b *joined) grant(sequence uint64) *smqpb.Grant {
	m := b.reign.m
	version, _ := m.hub.listen()
	g := &smqpb.Grant{
		Sequence: sequence,
		LeaseMs:  m.config.brokerLease().Milliseconds(),
		Join:     b.join,
	}
	m.fsm.view(func(s *registry.State) {
		g.ClusterId, g.Store, g.Leader = string(s.Cluster()), s.Store(), leaderInfo(s)
	})
	// The leading broker goes by loads, which change all the time.
	leads := g.GetLeader().GetBroker() == string(b.id) && b.grants%2 == 0
	if !b.told || version != b.toldAt || leads {
		b.told, b.toldAt = true, version
		g.Brokers = m.brokerInfos()
	}
	b.grants++
	return g
}
