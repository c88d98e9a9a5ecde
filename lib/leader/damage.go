package leader

import (
	"context"
	"maps"
	"sync/atomic"

	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// damage is why a topic cannot be loaded: a file of it is damaged. Until somebody
// mends the file the leader can do nothing for the topic, whose brokers go on as
// far as they know it. All other topics are none the worse.
type damage struct {
	err error         // names the file
	rev atomic.Uint64 // see hub
}

// damagedError is the error of a topic whose damage has been noted.
type damagedError struct{ error }

func (e *damagedError) Unwrap() error { return e.error }

// judged notes it if an error of reading a topic's files says that one of them is
// damaged, which is a *damagedError then. Others it returns as they are.
func (l *Leader) judged(name smq.Topic, err error) error {
	if !catalog.IsDamage(err) {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if old := l.damage[name]; old == nil || old.err.Error() != err.Error() {
		d := &damage{err: err}
		l.damage[name] = d
		l.hub.mark(&d.rev, nil)
		l.Metrics.damaged.Set(float64(len(l.damage)))
		l.Logger.Error("a file of a topic is damaged; the topic's segments are not moved until it is mended", "topic", name.String(), "err", err)
	}
	return &damagedError{err}
}

// mended takes in that nothing keeps the topic from being loaded, or that it is
// not there any more. l.mu is held.
func (l *Leader) mended(name smq.Topic) {
	if l.damage[name] == nil {
		return
	}
	delete(l.damage, name)
	l.Metrics.damaged.Set(float64(len(l.damage)))
	l.hub.mark(nil, nil)
}

// damages are the topics that cannot be loaded.
func (l *Leader) damages() map[smq.Topic]*damage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.damage)
}

// lookAtDamage looks whether damaged topics can be loaded now.
func (l *Leader) lookAtDamage(ctx context.Context) {
	for name := range l.damages() {
		look := l.sweepTopic
		if l.known(name) != nil {
			look = l.load // what is known of it was loaded before the damage
		}
		if err := look(ctx, name); err != nil {
			l.Logger.Debug("a damaged topic is as it was", "topic", name.String(), "err", err)
		} else {
			l.poke() // its brokers may have died meanwhile
		}
	}
}

// status is a damaged topic in one line.
func (d *damage) status(name smq.Topic) *smqpb.TopicStatus {
	return &smqpb.TopicStatus{Topic: name.String(), Error: rpc.ErrorInfo(d.err)}
}
