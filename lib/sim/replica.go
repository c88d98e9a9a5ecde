package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
)

// replica is a node that follows a broker's segment. What the owner sends, and
// what the replica answers, arrives when the search chooses, in order, or never.
type replica struct {
	w       *world
	n       *node
	owner   *broker
	index   int // among the owner's followers
	f       *seglog.Follower
	sent    smq.Position // what the owner has sent lies before it
	stored  smq.Position // what the owner has told to be stored
	answers []smq.Position
	refused bool // the owner has been told that it is fenced
	sealing bool // has tried to seal
	// answer is what the replica says that it holds, when something is wrong.
	answer func(held smq.Position, o seglog.Outgoing, err error) (smq.Position, error)
}

// replica adds a follower to a broker that has not opened its segment yet.
func (w *world) replica(name string, owner *broker) *replica {
	r := &replica{w: w, n: w.node(name), owner: owner, index: len(owner.followers)}
	r.f = seglog.NewFollower(seglog.FollowerConfig{
		Store: r.n, Ident: owner.id, Broker: smq.BrokerID(name), Owner: smq.BrokerID(owner.n.name), Limits: w.limits, Shared: r.n.shared,
	})
	owner.followers = append(owner.followers, r)
	w.actors = append(w.actors, r)
	return r
}

// replication is how a broker shares with its followers.
func (b *broker) replication() seglog.Replication {
	var r seglog.Replication
	for _, f := range b.followers {
		r.Followers = append(r.Followers, smq.BrokerID(f.n.name))
	}
	r.Leased = func() bool { return !b.expired.Load() }
	return r
}

// log is the owner's, while it is at work.
func (r *replica) log() *seglog.Log {
	if r.owner.n.isDead() || r.owner.n.log == nil || r.owner.n.log.Err() != nil {
		return nil
	}
	return r.owner.n.log
}

func (r *replica) begin() {}

func (r *replica) choices() []choice {
	var list []choice
	log := r.log()
	if log != nil && len(r.answers) > 0 {
		held := r.answers[0]
		list = append(list, choice{label: fmt.Sprintf("%s to %s: holds %d", r.n.name, r.owner.n.name, held), by: r.n.name, do: func() {
			r.answers = r.answers[1:]
			r.owner.n.told("held", held)
			log.Held(r.index, held)
		}})
	}
	if r.n.isDead() {
		return list
	}
	if log != nil && !r.refused {
		if o := log.Outgoing(r.sent, buffer); len(o.Batches) > 0 || o.Stored > r.stored {
			list = append(list, choice{label: fmt.Sprintf("%s to %s: batches from %d, %d stored", r.owner.n.name, r.n.name, o.First, o.Stored),
				by: r.owner.n.name, do: func() { r.deliver(o) }})
		}
	}
	if !r.sealed() && r.w.busy(r.n) == "" {
		list = append(list, choice{label: r.n.name + ": seal " + r.owner.id.Segment.String(), by: r.n.name, do: func() {
			r.sealing = true
			r.w.run(r.n, "seal", r.seal)
		}})
	}
	if r.owner.spare() {
		list = append(list, choice{label: r.n.name + ": crash", cost: budget{crashes: 1}, optional: true, do: func() { r.w.crash(r.n) }})
	}
	return list
}

// deliver gives the follower what the owner sends.
func (r *replica) deliver(o seglog.Outgoing) {
	batches := slices.Clone(o.Batches)
	var size int64
	for i := range batches {
		batches[i].Bytes = slices.Clone(batches[i].Bytes)
		size += int64(len(batches[i].Bytes))
	}
	if err := r.n.shared.ReserveReplica(size); err != nil {
		panic(err) // the buffer holds everything that a scenario sends
	}
	r.sent, r.stored = o.First+uint64(len(batches)), o.Stored
	held, err := r.f.Append(o.First, o.Stored, batches)
	if r.answer != nil {
		held, err = r.answer(held, o, err)
	}
	r.n.told("batches", held)
	switch {
	case errors.Is(err, smq.ErrSegmentSealed):
		r.refused = true
	case err != nil:
		r.w.unexpected(r.n, err)
	default:
		r.answers = append(r.answers, held)
	}
}

// sealed reports whether the follower has been told the seal.
func (r *replica) sealed() bool {
	_, known := r.w.sealsOf([]smq.SegmentID{r.owner.id.Segment})
	return r.sealing && known
}

func (r *replica) seal() {
	seal, err := r.f.Seal(r.n.ctx)
	if err == nil {
		r.w.sealed(r.n, seal)
	}
	r.w.unexpected(r.n, err, errRefused, smq.ErrNoSpace)
}

func (r *replica) digest() uint64 {
	return mixString(r.f.Held(), fmt.Sprint(r.sent, r.stored, r.answers, r.refused, r.sealing))
}

// spare reports whether one more of the segment's replicas may die: as long as
// one is left, nothing that was acked may be lost.
func (b *broker) spare() bool {
	alive := 0
	for _, f := range b.followers {
		if !f.n.isDead() {
			alive++
		}
	}
	if !b.n.isDead() {
		alive++
	}
	return alive > 1
}

// mayCrash reports whether a node is not the last replica of anything.
func (w *world) mayCrash(n *node) bool {
	for _, a := range w.actors {
		b, ok := a.(*broker)
		if !ok || len(b.followers) == 0 || b.spare() {
			continue
		}
		if b.n == n || slices.ContainsFunc(b.followers, func(f *replica) bool { return f.n == n }) {
			return false
		}
	}
	return true
}

// replicated reports whether anything is committed before it is stored.
func (w *world) replicated() bool {
	return slices.ContainsFunc(w.actors, func(a actor) bool {
		b, ok := a.(*broker)
		return ok && len(b.followers) > 0
	})
}

// outstanding checks that what was acked and shown before it was stored has
// come into the store by now.
func (w *world) outstanding(ctx context.Context) error {
	if err := w.checker.Check(ctx); err != nil {
		return err
	}
	return w.ledger.Outstanding()
}
