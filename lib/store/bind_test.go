package store_test

import (
	"errors"
	"testing"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
	"github.com/seaweedmq/smq/lib/store/mem"
)

func TestBind(t *testing.T) {
	st := mem.New()
	a, err := store.Bind(t.Context(), st, "")
	if a == "" || err != nil {
		t.Fatalf("bind to whichever it is: %q %v", a, err)
	}
	b := smq.NewClusterID()
	for _, want := range []smq.ClusterID{a, a, ""} {
		if got, err := store.Bind(t.Context(), st, want); got != a || err != nil {
			t.Errorf("bind to %q: %q %v, want %q", want, got, err, a)
		}
	}
	if got, err := store.Bind(t.Context(), st, b); got != a || !errors.Is(err, smq.ErrConflict) {
		t.Errorf("bind another's: %q %v", got, err)
	}
}
