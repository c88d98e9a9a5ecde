package store_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
	"github.com/seaweedmq/smq/lib/store/fault"
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

// TestBindRace binds from many processes at once, each of which would choose an
// id of its own: all of them get the same one.
func TestBindRace(t *testing.T) {
	st := mem.New()
	ids := make([]smq.ClusterID, 16)
	errs := make([]error, len(ids))
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() { ids[i], errs[i] = store.Bind(t.Context(), st.Handle(), "") })
	}
	wg.Wait()
	for i, id := range ids {
		if id == "" || id != ids[0] || errs[i] != nil {
			t.Errorf("process %d: %q %v, the first got %q", i, id, errs[i], ids[0])
		}
	}
}

// TestBindAgain repeats a Bind whose answers were lost until it succeeds, and
// has what was lost arrive late: the id stays.
func TestBindAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := mem.New()
		st := fault.New(inner.Handle(), 1, nil)
		st.Before = func(op fault.Op) fault.Decision {
			if op.Kind == fault.Create && op.N < 3 {
				return fault.Decision{Outcome: fault.Late, LateBy: time.Hour}
			}
			return fault.Decision{}
		}
		var id smq.ClusterID
		err := store.ErrAmbiguous
		tries := 0
		for ; errors.Is(err, store.ErrAmbiguous); tries++ {
			id, err = store.Bind(t.Context(), st, "")
		}
		if err != nil || tries != 4 {
			t.Errorf("Bind: %v after %d tries", err, tries)
		}
		time.Sleep(2 * time.Hour)
		if got, err := store.Bind(t.Context(), inner, id); got != id || err != nil {
			t.Errorf("later it belongs to %q, %v, want %q", got, err, id)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestBindCorrupt finds a binding that cannot be read: it is neither taken for
// absent nor written over.
func TestBindCorrupt(t *testing.T) {
	for _, content := range []string{"", "{", `{"format":1}`, `{"format":2,"cluster_id":"x"}`} {
		st := mem.New()
		if err := st.Create(t.Context(), "/cluster.json", store.Bytes([]byte(content))); err != nil {
			t.Fatal(err)
		}
		for _, want := range []smq.ClusterID{"", "x"} {
			if got, err := store.Bind(t.Context(), st, want); !errors.Is(err, smq.ErrCorrupt) {
				t.Errorf("bind %q to %q: %q %v, want it corrupt", content, want, got, err)
			}
		}
	}
}
