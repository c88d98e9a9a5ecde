package rpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// Bounds of the waits between attempts, and of one attempt at a master: one
// that hangs must not keep the others from being asked.
const (
	minBackoff    = 50 * time.Millisecond
	maxBackoff    = time.Second
	masterTimeout = 2 * time.Second
	// Waits are no longer than soonBackoff until they have lasted for soonFor: when a
	// leader has died the next one is there within half a second, and a longer wait
	// would outlast that by as much again.
	soonBackoff = 100 * time.Millisecond
	soonFor     = time.Second
)

// Cluster finds the masters that answer, the leading broker and everybody else,
// from a list of masters' addresses. It remembers who led when last asked. It
// is safe for concurrent use.
type Cluster struct {
	masters []string
	conns   *Conns
	logger  *slog.Logger
	// What the log is told of masters that do not answer, and of a leading
	// broker that does not.
	masterless, leaderless outage

	mu      sync.Mutex
	learned []string // masters that answers named and the list does not
	prefer  string   // the master to ask first
	leader  string   // the leading broker's address; empty when it must be asked for
}

// NewCluster makes a Cluster of the given masters' gRPC addresses, which
// connects through conns. The logger, if not nil, is warned when nobody has
// answered for two seconds, and is told when somebody does again.
func NewCluster(masters []string, conns *Conns, logger *slog.Logger) *Cluster {
	return &Cluster{
		masters: slices.Clone(masters), conns: conns, logger: orDiscard(logger),
		masterless: outage{failing: "no master answers", over: "a master answers again"},
		leaderless: outage{failing: "no leading broker answers", over: "the leading broker answers again"},
	}
}

// Info tells where everything is, from the leading master when it can be asked,
// else from any that answers. It goes on trying until ctx ends; the error then
// is an smq.ErrUnavailable, and ctx's error, and names the addresses tried, with
// what the last attempt found that ctx did not cut short.
// smq.ErrInvalid at once when none of the addresses can be a master's, and
// smq.ErrUnavailable at once when other kinds of servers answer at all of them.
func (c *Cluster) Info(ctx context.Context) (*smqpb.ClusterInfo, error) {
	var p pause
	var last error
	for {
		info, err := c.askMasters(ctx)
		if err == nil {
			c.masterless.worked(c.logger)
		}
		if err == nil || isFinal(err) {
			return info, err
		}
		if ctx.Err() == nil {
			c.masterless.failed(c.logger, err)
			last = err
		} else if last != nil {
			err = last
		}
		if ended := p.wait(ctx); ended != nil {
			return nil, &worded{"no master answers at " + err.Error(), []error{smq.ErrUnavailable, ended, err}}
		}
		c.logger.Debug("no master answers yet", "error", err)
	}
}

// attempts are the failures of several attempts, in one line.
type attempts []error

func (a attempts) Error() string {
	texts := make([]string, len(a))
	for i, err := range a {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

func (a attempts) Unwrap() []error { return a }

// isFinal reports whether nothing else can come of further attempts.
func isFinal(err error) bool {
	var all attempts
	if !errors.As(err, &all) {
		all = attempts{err}
	}
	return !slices.ContainsFunc(all, func(err error) bool {
		return !errors.Is(err, smq.ErrInvalid) && !errors.Is(err, ErrForeign)
	})
}

func (c *Cluster) askMaster(ctx context.Context, addr string) (*smqpb.ClusterInfo, error) {
	conn, err := c.conns.Get(addr)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, masterTimeout)
	defer cancel()
	info, err := smqpb.NewMasterClient(conn).Cluster(ctx, &smqpb.ClusterRequest{})
	switch {
	case errors.Is(err, ErrForeign):
		return nil, &worded{addr + " is not an SMQ master", []error{smq.ErrUnavailable, ErrForeign}}
	case err != nil:
		return nil, &worded{fmt.Sprintf("%s (%v)", addr, err), []error{err}}
	}
	return info, nil
}

// candidates lists the masters' addresses, the one to ask first in front.
func (c *Cluster) candidates() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, addr := range append(append([]string{c.prefer}, c.masters...), c.learned...) {
		if addr != "" && !slices.Contains(all, addr) {
			all = append(all, addr)
		}
	}
	return all
}

func (c *Cluster) preferMaster(addr string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.prefer = addr
}

// learn remembers the other masters' addresses, so that a client that was
// told of one survives its end.
func (c *Cluster) learn(info *smqpb.ClusterInfo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.learned = c.learned[:0]
	for _, m := range info.GetMasters() {
		if addr := m.GetAddress(); addr != "" && !slices.Contains(c.masters, addr) {
			c.learned = append(c.learned, addr)
		}
	}
}

// Master finds the leading master and returns a client for it and its address.
// It goes on trying until ctx ends, as Info does.
func (c *Cluster) Master(ctx context.Context) (smqpb.MasterClient, string, error) {
	var p pause
	for {
		info, err := c.Info(ctx)
		if err != nil {
			return nil, "", err
		}
		if addr := info.GetLeadingMaster(); addr != "" {
			conn, err := c.conns.Get(addr)
			if err != nil {
				return nil, "", err
			}
			return smqpb.NewMasterClient(conn), addr, nil
		}
		if err := p.wait(ctx); err != nil {
			return nil, "", &worded{"no master leads: less than a majority of them is there", []error{smq.ErrUnavailable, err}}
		}
	}
}

// Leader makes a call to the leading broker. When it turns out that another one
// leads, which the masters are asked for when the call takes long, call is made
// again with that one; when the leader is unavailable or
// draining, or there is none, again after a pause and with whoever leads then;
// until it succeeds, fails in another way or ctx ends. The error then is the
// last one that says more than that ctx has ended: ErrNoBroker when there is no
// broker.
//
// A call that ended in smq.ErrUnavailable may have taken effect. Making it again
// is harmless: everything that a leader does can be repeated, except that
// CreateTopic then says smq.ErrExists. call may count how often it is made to
// tell this from a topic that somebody else created.
func (c *Cluster) Leader(ctx context.Context, call func(ctx context.Context, l smqpb.LeaderClient) error) error {
	var p pause
	var last error
	away := make(map[string]bool) // who has not answered
	for hops := 0; ; hops++ {
		addr, err := c.leaderAddress(ctx)
		if err == nil {
			err = c.callLeader(ctx, addr, call)
		}
		if err == nil {
			c.leaderless.worked(c.logger)
		}
		switch {
		case err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) && last != nil:
			return &worded{last.Error(), []error{last, ctx.Err()}}
		case err == nil, ctx.Err() != nil, !leaderMoved(err):
			return err
		}
		last = err
		c.leaderless.failed(c.logger, err)
		away[addr] = errors.Is(err, smq.ErrUnavailable)
		next := leaderHint(err)
		if next == addr || away[next] {
			// A leader that the masters have named just now, and that has not heard of
			// it yet, points back to the one that is gone. The masters are asked again;
			// but somebody who insists is followed.
			delete(away, next)
			next = ""
		}
		c.setLeader(addr, next)
		// Two brokers that point to each other must not be asked in a tight loop.
		if next != "" && hops < 3 {
			continue
		}
		if p.wait(ctx) != nil {
			return err
		}
		c.logger.Debug("asking the leading broker again", "address", addr, "error", err)
	}
}

func (c *Cluster) callLeader(ctx context.Context, addr string, call func(context.Context, smqpb.LeaderClient) error) error {
	conn, err := c.conns.Get(addr)
	if err != nil {
		return err
	}
	supervised, stop := c.supervise(ctx, addr)
	defer stop()
	err = call(supervised, smqpb.NewLeaderClient(conn))
	var moved *NotLeaderError
	if err != nil && errors.As(context.Cause(supervised), &moved) {
		err = &worded{moved.Error(), []error{moved, smq.ErrUnavailable}} // it hangs
	}
	if err != nil {
		return fmt.Errorf("leading broker %s: %w", addr, err)
	}
	return nil
}

// leaderMoved reports whether another leader, or the same one later, may answer.
func leaderMoved(err error) bool {
	return errors.Is(err, smq.ErrNotLeader) || errors.Is(err, smq.ErrUnavailable) || errors.Is(err, smq.ErrDraining)
}

// leaderHint is the address that a refusal named.
func leaderHint(err error) string {
	var notLeader *NotLeaderError
	if errors.As(err, &notLeader) {
		return notLeader.Address
	}
	return ""
}

// leaderAddress is the leading broker's address as known or, when there is
// none, as the masters tell it.
func (c *Cluster) leaderAddress(ctx context.Context) (string, error) {
	c.mu.Lock()
	addr := c.leader
	c.mu.Unlock()
	if addr != "" {
		return addr, nil
	}
	info, err := c.Info(ctx)
	if err != nil {
		return "", err
	}
	if addr = info.GetLeader().GetAddress(); addr == "" {
		if len(info.GetBrokers()) == 0 {
			return "", ErrNoBroker
		}
		return "", fmt.Errorf("%w: no broker leads yet (%s)", smq.ErrUnavailable, describe(info))
	}
	c.setLeader("", addr)
	return addr, nil
}

func describe(info *smqpb.ClusterInfo) string {
	var brokers []string
	for _, b := range info.GetBrokers() {
		brokers = append(brokers, b.GetAddress())
	}
	return "brokers: " + strings.Join(brokers, ", ")
}

// setLeader replaces what is known, unless somebody else has done so meanwhile.
func (c *Cluster) setLeader(old, addr string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leader == old {
		c.leader = addr
	}
}

// Broker returns a client for the broker at addr; it does not wait for the
// connection, and fails only as Conns.Get does.
func (c *Cluster) Broker(_ context.Context, addr string) (smqpb.BrokerClient, error) {
	conn, err := c.conns.Get(addr)
	if err != nil {
		return nil, err
	}
	return smqpb.NewBrokerClient(conn), nil
}

// Conn returns the shared connection to addr, for the data plane.
func (c *Cluster) Conn(addr string) (*grpc.ClientConn, error) { return c.conns.Get(addr) }

// pause is a wait that doubles, with jitter so that many waiters spread out.
type pause struct{ last, total time.Duration }

// wait returns nil after the next pause or ctx's error when it ends before.
func (p *pause) wait(ctx context.Context) error {
	most := maxBackoff
	if p.total < soonFor {
		most = soonBackoff
	}
	p.last = min(max(2*p.last, minBackoff), most)
	next := p.last/2 + rand.N(p.last/2)
	p.total += next
	timer := time.NewTimer(next)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
