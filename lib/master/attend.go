package master

import (
	"context"
	"fmt"
	"time"

	"github.com/seaweedmq/smq/lib/registry"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// announceTimeout bounds one attempt to reach the leading master, announcePause
// is the time between two.
const (
	announceTimeout = 2 * time.Second
	announcePause   = 500 * time.Millisecond
)

// attend looks, after every change, whether this member is ready, whether the
// store is the one that it was started for, and whether the registry has its
// addresses.
func (m *Master) attend() {
	isReady := false
	for {
		_, changed := m.hub.listen()
		var known registry.Master
		var founded bool
		var store string
		m.fsm.view(func(s *registry.State) {
			known, _ = s.Master(m.config.id())
			founded, store = s.Cluster() != "", s.Store()
		})
		if founded && m.checkStore(founded, store) != nil {
			return
		}
		leading := m.leadingAddress()
		if !isReady && founded && leading != "" && (leading != m.config.Advertise || m.reigns()) {
			isReady = true
			close(m.ready)
		}
		var again <-chan time.Time
		if known != m.self() && leading != "" && leading != m.config.Advertise {
			if err := m.announce(leading); err != nil {
				m.logger.Debug("could not announce this master to the leading one", "leading", leading, "error", err)
				again = time.After(announcePause)
			}
		}
		select {
		case <-changed:
		case <-again:
		case <-m.stopping:
			return
		}
	}
}

// announce tells the leading master this one's addresses.
func (m *Master) announce(leading string) error {
	conn, err := m.conns.Get(leading)
	if err != nil {
		return err
	}
	ctx, cancel := m.background(announceTimeout)
	defer cancel()
	self := m.self()
	_, err = smqpb.NewMasterClient(conn).Announce(ctx, &smqpb.AnnounceRequest{Master: &smqpb.MasterInfo{
		Id: self.ID, Address: self.Address, HttpAddress: self.HTTPAddress,
	}})
	return err
}

// background is a context for work of the master's own, which ends with it.
func (m *Master) background(d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	go func() {
		select {
		case <-m.stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// Announce implements smqpb.MasterServer.
func (m *Master) Announce(_ context.Context, req *smqpb.AnnounceRequest) (*smqpb.AnnounceResponse, error) {
	r, err := m.leading()
	if err != nil {
		return nil, err
	}
	a := registry.Master{
		ID: req.GetMaster().GetId(), Address: req.GetMaster().GetAddress(), HTTPAddress: req.GetMaster().GetHttpAddress(),
	}
	if _, ok := m.members()[a.ID]; !ok {
		return nil, fmt.Errorf("%w master %q: it does not belong to the raft group", smq.ErrInvalid, a.ID)
	}
	if err := checkAddress("the master's address", a.Address); err != nil {
		return nil, err
	}
	if err := r.setMaster(a); err != nil {
		return nil, err
	}
	return &smqpb.AnnounceResponse{}, nil
}
