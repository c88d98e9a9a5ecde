package broker

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
)

const (
	// waitsLong is how long messages may wait for a store that says nothing
	// before that counts as trouble: a request to a store that works is over
	// before.
	waitsLong = 10 * time.Second
	// openingFor is how long a segment that could not be opened speaks against
	// the store.
	openingFor = time.Minute
)

// troubleOf is why a segment brings nothing into the store; nil: it does, or has
// nothing to bring.
func troubleOf(s seglog.Stats) error {
	if s.StoreError != nil {
		return s.StoreError
	}
	if s.OldestUnsent > waitsLong {
		return fmt.Errorf("%w: messages wait for it since %v", smq.ErrTimeout, s.OldestUnsent.Round(time.Second))
	}
	return nil
}

// storeTrouble is why the broker brings nothing into the store, for one of its
// segments at least.
func (b *Broker) storeTrouble() error {
	for _, s := range b.segments().snapshot() {
		if err := troubleOf(s.log.Stats()); err != nil {
			return err
		}
	}
	return b.opening.trouble()
}

// opening is what the last attempt to open a segment told of the store.
type opening struct {
	mu  sync.Mutex
	err error
	at  time.Time
}

// failed takes note that a segment could not be opened. A segment that is
// another's says nothing of the store.
func (o *opening) failed(err error) {
	if errors.Is(err, smq.ErrNotOwner) || errors.Is(err, smq.ErrConflict) {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err, o.at = err, time.Now()
}

func (o *opening) worked() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = nil
}

func (o *opening) trouble() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil || time.Since(o.at) > openingFor {
		return nil
	}
	return o.err
}
