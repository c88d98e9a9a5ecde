package leader_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
	"github.com/seaweedmq/smq/lib/store"
)

// unseen is a store that has, by its own word, what it does not show.
type unseen struct {
	store.Store
	path     string // a part of the paths concerned
	attempts atomic.Int32
}

// enough is when nobody is going to give up.
const enough = 1000

func (s *unseen) refuse(path string) error {
	switch {
	case !strings.Contains(path, s.path):
		return nil
	case s.attempts.Add(1) >= enough:
		return smq.ErrNoSpace
	}
	return fmt.Errorf("another one is there: %w", smq.ErrConflict)
}

func (s *unseen) Create(ctx context.Context, path string, content []store.Part) error {
	if err := s.refuse(path); err != nil {
		return err
	}
	return s.Store.Create(ctx, path, content)
}

func (s *unseen) Replace(ctx context.Context, path string, data []byte, old store.Version) (store.Version, error) {
	if err := s.refuse(path); err != nil {
		return old, err
	}
	return s.Store.Replace(ctx, path, data, old)
}

// What somebody else has written, and the store does not show yet, is waited for with
// patience.
func TestConflictsAreNotTriedWithoutEnd(t *testing.T) {
	for what, path := range map[string]string{"layout": "/layout/00000000000000000002", "configuration": "/topic.json"} {
		t.Run(what, func(t *testing.T) {
			bubble(t, []string{"a"}, func(b *bed) {
				b.create("t", 4)
				st := &unseen{Store: b.st.Handle(), path: path}
				l := b.lead(st)
				ctx, cancel := context.WithTimeout(b.t.Context(), 10*time.Second)
				defer cancel()
				var err error
				if what == "layout" {
					_, err = l.Lookup(ctx, &smqpb.LookupRequest{Topic: "t", Assign: true})
				} else {
					_, err = l.DeleteTopic(ctx, &smqpb.DeleteTopicRequest{Topic: "t"})
				}
				if n := st.attempts.Load(); err == nil || n > 100 {
					b.t.Errorf("%d attempts within 10 seconds, %v", n, err)
				}
			})
		})
	}
}
