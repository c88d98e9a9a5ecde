//go:build weed

package seaweed

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

// pair is a Store behind a relay and one without, on the same folder, in which
// there is a file already.
func pair(t *testing.T) (r *relay, behind, direct *Store) {
	server, folder := sharedServer(t), freshFolder()
	r = newRelay(t, server)
	behind, direct = openAt(t, server, folder, r.option()), openAt(t, server, folder)
	if err := behind.Create(t.Context(), "/d/first", store.Bytes([]byte("x"))); err != nil {
		t.Fatal(err)
	}
	return r, behind, direct
}

func (s *Store) has(t testing.TB, path string) bool {
	t.Helper()
	_, err := s.Stat(t.Context(), path)
	if err != nil && !errors.Is(err, smq.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

func holds(t testing.TB, s *Store, path, want string) {
	t.Helper()
	got, _, err := s.Read(t.Context(), path)
	if err != nil || string(got) != want {
		t.Errorf("Read(%s) = %.40q (%d bytes), %v, want %.40q", path, got, len(got), err, want)
	}
}

// mutations are the calls that change something, with what each leaves.
var mutations = map[string]struct {
	call    func(ctx context.Context, s *Store) error
	applied func(t testing.TB, s *Store) bool
	again   error // of a repeat, once it was applied
}{
	"Create": {
		call:    func(ctx context.Context, s *Store) error { return s.Create(ctx, "/d/new", store.Bytes([]byte("y"))) },
		applied: func(t testing.TB, s *Store) bool { return s.has(t, "/d/new") },
		again:   smq.ErrExists,
	},
	"Replace": {
		call: func(ctx context.Context, s *Store) error {
			_, err := s.Replace(ctx, "/d/new", []byte("y"), "")
			return err
		},
		applied: func(t testing.TB, s *Store) bool { return s.has(t, "/d/new") },
		again:   smq.ErrConflict,
	},
	"Remove": {
		call:    func(ctx context.Context, s *Store) error { return s.Remove(ctx, "/d/first") },
		applied: func(t testing.TB, s *Store) bool { return !s.has(t, "/d/first") },
	},
}

// TestAnswerLost loses the connection between a change and its answer.
func TestAnswerLost(t *testing.T) {
	for name, m := range mutations {
		t.Run(name, func(t *testing.T) {
			r, behind, direct := pair(t)
			r.losingAnswers.Store(true)
			outcome := make(chan error, 1)
			go func() { outcome <- m.call(t.Context(), behind) }()
			until(t, "the change is made", func() bool { return m.applied(t, direct) })
			r.hangUp()
			wantError(t, <-outcome, store.ErrAmbiguous)

			r.heal()
			if err := m.call(t.Context(), behind); !errors.Is(err, m.again) {
				t.Errorf("again: %v, want %v", err, m.again)
			}
		})
	}
}

// TestRequestLost loses the connection after the request has left, and before
// it arrived. The Store cannot tell that from the above.
func TestRequestLost(t *testing.T) {
	for name, m := range mutations {
		t.Run(name, func(t *testing.T) {
			r, behind, direct := pair(t)
			r.losingRequests.Store(true)
			lost, outcome := r.next(false), make(chan error, 1)
			go func() { outcome <- m.call(t.Context(), behind) }()
			<-lost
			r.hangUp()
			wantError(t, <-outcome, store.ErrAmbiguous)
			if m.applied(t, direct) {
				t.Error("it was applied without having arrived")
			}
			r.heal()
			if err := m.call(t.Context(), behind); err != nil {
				t.Errorf("again: %v", err)
			}
		})
	}
}

// TestFrozenFiler has a deadline pass while the filer has the request and is
// frozen: the outcome is open, and the change is made when it goes on.
func TestFrozenFiler(t *testing.T) {
	for name, m := range mutations {
		t.Run(name, func(t *testing.T) {
			r, behind, direct := pair(t)
			if err := sharedServer(t).Pause(); err != nil {
				t.Fatal(err)
			}
			resume := func() error { return sharedServer(t).Resume() }
			defer resume()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			passed, outcome := r.next(true), make(chan error, 1) // the call's end must not reach the filer
			go func() { outcome <- m.call(ctx, behind) }()
			<-passed
			cancel()
			wantError(t, <-outcome, store.ErrAmbiguous, context.Canceled)
			if err := resume(); err != nil {
				t.Fatal(err)
			}
			until(t, "the late change is made", func() bool { return m.applied(t, direct) })
		})
	}
}

// TestFrozenFilerDeadline is the same with a deadline, which the filer knows.
func TestFrozenFilerDeadline(t *testing.T) {
	server := sharedServer(t)
	_, behind, _ := pair(t)
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	defer server.Resume()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	wantError(t, behind.Create(ctx, "/d/new", nil), store.ErrAmbiguous, context.DeadlineExceeded)
	_, err := behind.Stat(ctx, "/d/first")
	wantError(t, err, context.DeadlineExceeded)
}

// noticed waits until the Store knows that it has no connection: before that, a
// request may leave.
func (s *Store) noticed(t testing.TB) {
	until(t, "the connection's end is noticed", func() bool {
		return s.filers.all[0].conn.GetState() != connectivity.Ready
	})
}

// TestFilerDown calls while nothing listens: nothing was sent, so nothing is
// ambiguous.
func TestFilerDown(t *testing.T) {
	for name, m := range mutations {
		t.Run(name, func(t *testing.T) {
			r, behind, direct := pair(t)
			r.refusing.Store(1 << 30)
			r.hangUp()
			behind.noticed(t)
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			err := m.call(ctx, behind)
			wantError(t, err, context.DeadlineExceeded)
			if errors.Is(err, store.ErrAmbiguous) || m.applied(t, direct) {
				t.Errorf("error %v, applied %v: want a sure failure", err, m.applied(t, direct))
			}
		})
	}
}

// TestFilerComesBack calls while nothing listens for a moment.
func TestFilerComesBack(t *testing.T) {
	r, behind, direct := pair(t)
	r.refusing.Store(3)
	r.hangUp()
	behind.noticed(t)
	if err := behind.Create(t.Context(), "/d/new", store.Bytes([]byte("y"))); err != nil {
		t.Fatal(err)
	}
	holds(t, direct, "/d/new", "y")
}
