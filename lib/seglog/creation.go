package seglog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

// creation is the effort to create one chunk, until its outcome is known.
type creation struct {
	l         *Log
	f         *flush
	ref       *store.Ref // of the whole chunk, once uploaded
	retry     retryBackoff
	ambiguous bool      // an attempt may have been applied, or may yet be
	fullSince time.Time // the store has said that it is full since then
}

func newCreation(l *Log, f *flush) *creation {
	return &creation{l: l, f: f, retry: newBackoff()}
}

// takenError says that the chunk's number was taken by somebody else's chunk.
type takenError struct {
	footer footer
	size   int64
}

func (e *takenError) Error() string {
	return fmt.Sprintf("%v: broker %s has written chunk %d", smq.ErrNotOwner, e.footer.Broker, e.footer.Chunk)
}

func (e *takenError) Unwrap() error { return smq.ErrNotOwner }

// upload puts the chunk's bytes into the store ahead of its turn, when they
// are too many for a create of one round trip.
func (c *creation) upload(ctx context.Context) error {
	if c.f.size <= c.l.st.Limits().Inline {
		return nil
	}
	data := make([][]byte, len(c.f.content))
	for i, p := range c.f.content {
		data[i] = p.Bytes
	}
	for {
		ref, err := c.l.st.Upload(ctx, data...)
		if err == nil {
			c.ref = &ref
			return nil
		}
		if err := c.failed(ctx, "upload", err); err != nil {
			return err
		}
	}
}

// create creates the chunk. It returns nil when the chunk is there, a
// *takenError when somebody else's is, smq.ErrNoSpace when it is certain that
// nothing was stored and the store stays full, and the context's error when
// the log closes.
func (c *creation) create(ctx context.Context) error {
	release, err := c.l.shared.acquireCreate(ctx)
	if err != nil {
		return err
	}
	defer release()
	for {
		content := c.f.content
		if c.ref != nil {
			content = store.Refs(*c.ref)
		}
		err := c.l.st.Create(ctx, c.l.id.ChunkPath(c.f.footer.Chunk), content)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, smq.ErrExists):
			var known bool
			if known, err = c.whose(ctx); known {
				return err
			}
		case errors.Is(err, store.ErrAmbiguous):
			c.ambiguous = true
		case errors.Is(err, smq.ErrNotFound) && c.ref != nil:
			// What was uploaded is gone. If a create has taken it over, the
			// next attempt finds the chunk; else that one brings the bytes.
			c.ref = nil
		}
		if err := c.failed(ctx, "create", err); err != nil {
			return err
		}
	}
}

// whose looks at the chunk that has the number: known says whether it could,
// and err is nil when it is ours.
func (c *creation) whose(ctx context.Context) (known bool, err error) {
	theirs, size, err := c.l.inTheWay(ctx, c.f.footer.Chunk)
	if err != nil {
		return false, err
	}
	if ownership(c.f.footer, theirs) == nil {
		return true, nil
	}
	return true, &takenError{footer: theirs, size: size}
}

// failed waits before the next attempt. It returns an error when there must
// not be one.
func (c *creation) failed(ctx context.Context, what string, err error) error {
	c.l.shared.metrics.storeError(what)
	c.l.failing(err)
	if !errors.Is(err, smq.ErrNoSpace) {
		c.fullSince = time.Time{}
		c.l.logger.Warn("store does not take a chunk, trying again", "what", what, "segment", c.l.id.String(), "chunk", c.f.footer.Chunk, "err", err)
	} else if c.fullSince.IsZero() {
		c.fullSince = time.Now()
	} else if !c.ambiguous && len(c.l.held) == 0 && time.Since(c.fullSince) >= c.l.limits.NoSpaceAfter {
		return err
	}
	return c.retry.wait(ctx)
}

// discard gives back what was uploaded for a chunk that will never be created.
func (c *creation) discard(ctx context.Context) {
	if c.ref == nil || c.ambiguous {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := c.l.st.Discard(ctx, *c.ref); err != nil {
		c.l.logger.Debug("uploaded bytes are left behind", "segment", c.l.id.String(), "err", err)
	}
}
