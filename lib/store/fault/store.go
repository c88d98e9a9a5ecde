package fault

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

// change is a call that changes the store. apply carries it out; keep makes an
// apply that does not depend on the caller's buffers, for a late change.
func (s *Store) change(ctx context.Context, kind Kind, path string, apply func(context.Context) error, keep func() func(context.Context) error) error {
	op, d, err := s.begin(kind, path)
	if err != nil {
		return err
	}
	e := Entry{Op: op, Decision: d}
	e.Applied, e.Err = s.carryOut(ctx, op, d, apply, keep)
	return s.end(e)
}

func (s *Store) carryOut(ctx context.Context, op Op, d Decision, apply func(context.Context) error, keep func() func(context.Context) error) (applied bool, err error) {
	held := s.hold(ctx, s.life, d.Delay)
	if held == ErrKilled {
		if s.chance(op, "kill").Float64() < 0.5 {
			applied = apply(context.WithoutCancel(ctx)) == nil
		}
		return applied, ambiguous(op, ErrKilled)
	}
	if d.Outcome == Late {
		s.arriveLate(op, d, keep())
		return false, ambiguous(op, errNoAnswer(held))
	}
	if held != nil {
		return false, ambiguous(op, held)
	}
	switch d.Outcome {
	case Refuse:
		return false, refused(op)
	case Full:
		return false, fmt.Errorf("%v: injected: %w", op, smq.ErrNoSpace)
	case Drop:
		return false, ambiguous(op, errNoAnswer(nil))
	case DieBefore:
		s.die()
		return false, ambiguous(op, ErrKilled)
	}
	err = apply(ctx)
	applied = err == nil
	switch d.Outcome {
	case Lose:
		err = ambiguous(op, errNoAnswer(nil))
	case DieAfter:
		s.die()
		err = ambiguous(op, ErrKilled)
	}
	return applied, err
}

// arriveLate carries a change out in the background.
func (s *Store) arriveLate(op Op, d Decision, apply func(context.Context) error) {
	life := s.life
	if s.Zombies {
		life = s.open
	}
	s.late.Go(func() {
		if s.hold(life, life, d.LateBy) != nil {
			return
		}
		err := apply(life)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.note(Entry{Op: op, Decision: d, Arrival: true, Applied: err == nil, Err: err})
	})
}

// look is a call that changes nothing.
func (s *Store) look(ctx context.Context, kind Kind, path string, f func(context.Context) error) error {
	op, d, err := s.begin(kind, path)
	if err != nil {
		return err
	}
	e := Entry{Op: op, Decision: d}
	if held := s.hold(ctx, s.life, d.Delay); held != nil {
		e.Err = fmt.Errorf("%v: %w", op, held)
		return s.end(e)
	}
	switch d.Outcome {
	case Pass:
		e.Err = f(ctx)
		e.Applied = e.Err == nil
	case DieBefore, DieAfter:
		s.die()
		e.Err = fmt.Errorf("%v: %w", op, ErrKilled)
	default:
		e.Err = refused(op)
	}
	return s.end(e)
}

func refused(op Op) error { return fmt.Errorf("%v: injected: %w", op, smq.ErrUnavailable) }

func ambiguous(op Op, why error) error {
	return fmt.Errorf("%v: injected: %w: %w", op, store.ErrAmbiguous, why)
}

// errNoAnswer is why a caller does not know: its context has ended, or else the
// answer is lost.
func errNoAnswer(held error) error {
	if held != nil {
		return held
	}
	return smq.ErrTimeout
}

// Create creates a file, or fails.
func (s *Store) Create(ctx context.Context, path string, content []store.Part) error {
	create := func(content []store.Part) func(context.Context) error {
		return func(ctx context.Context) error { return s.inner.Create(ctx, path, content) }
	}
	return s.change(ctx, Create, path, create(content), func() func(context.Context) error {
		return create(cloneContent(content))
	})
}

func cloneContent(content []store.Part) []store.Part {
	clone := slices.Clone(content)
	for i, p := range clone {
		clone[i].Bytes = bytes.Clone(p.Bytes)
		if p.Ref != nil {
			clone[i].Ref = &store.Ref{Pieces: slices.Clone(p.Ref.Pieces)}
		}
	}
	return clone
}

// Replace replaces a file, or fails.
func (s *Store) Replace(ctx context.Context, path string, data []byte, version store.Version) (next store.Version, err error) {
	err = s.change(ctx, Replace, path, func(ctx context.Context) (err error) {
		next, err = s.inner.Replace(ctx, path, data, version)
		return err
	}, func() func(context.Context) error {
		data := bytes.Clone(data)
		return func(ctx context.Context) error {
			_, err := s.inner.Replace(ctx, path, data, version)
			return err
		}
	})
	if err != nil {
		return "", err
	}
	return next, nil
}

// Remove removes a file, or fails.
func (s *Store) Remove(ctx context.Context, path string) error {
	return s.changeByPath(ctx, Remove, path, s.inner.Remove)
}

// RemoveAll removes a folder, or fails.
func (s *Store) RemoveAll(ctx context.Context, dir string) error {
	return s.changeByPath(ctx, RemoveAll, dir, s.inner.RemoveAll)
}

func (s *Store) changeByPath(ctx context.Context, kind Kind, path string, f func(context.Context, string) error) error {
	apply := func(ctx context.Context) error { return f(ctx, path) }
	return s.change(ctx, kind, path, apply, func() func(context.Context) error { return apply })
}

// Upload uploads bytes, or fails.
func (s *Store) Upload(ctx context.Context, data ...[]byte) (ref store.Ref, err error) {
	err = s.change(ctx, Upload, "", func(ctx context.Context) (err error) {
		ref, err = s.inner.Upload(ctx, data...)
		return err
	}, func() func(context.Context) error {
		data := slices.Concat(data...)
		return func(ctx context.Context) error {
			_, err := s.inner.Upload(ctx, data)
			return err
		}
	})
	if err != nil {
		return store.Ref{}, err
	}
	return ref, nil
}

// Discard discards uploaded bytes, or fails.
func (s *Store) Discard(ctx context.Context, ref store.Ref) error {
	discard := func(ref store.Ref) func(context.Context) error {
		return func(ctx context.Context) error { return s.inner.Discard(ctx, ref) }
	}
	return s.change(ctx, Discard, "", discard(ref), func() func(context.Context) error {
		return discard(store.Ref{Pieces: slices.Clone(ref.Pieces)})
	})
}

// Read reads a file, or fails.
func (s *Store) Read(ctx context.Context, path string) (data []byte, version store.Version, err error) {
	err = s.look(ctx, Read, path, func(ctx context.Context) (err error) {
		data, version, err = s.inner.Read(ctx, path)
		return err
	})
	return data, version, err
}

// ReadAt reads a part of a file, or fails.
func (s *Store) ReadAt(ctx context.Context, path string, p []byte, off int64) (n int, err error) {
	err = s.look(ctx, ReadAt, path, func(ctx context.Context) (err error) {
		n, err = s.inner.ReadAt(ctx, path, p, off)
		return err
	})
	return n, err
}

// Stat describes a file or a folder, or fails.
func (s *Store) Stat(ctx context.Context, path string) (info store.Info, err error) {
	err = s.look(ctx, Stat, path, func(ctx context.Context) (err error) {
		info, err = s.inner.Stat(ctx, path)
		return err
	})
	return info, err
}

// List lists a folder, or fails.
func (s *Store) List(ctx context.Context, dir, after string, limit int) (infos []store.Info, err error) {
	err = s.look(ctx, List, dir, func(ctx context.Context) (err error) {
		infos, err = s.inner.List(ctx, dir, after, limit)
		return err
	})
	return infos, err
}

// Watch watches a folder, or fails at once; a running watch breaks when the
// process is killed, and is silent during a Pause.
func (s *Store) Watch(ctx context.Context, dir string, ready func(), changed func(path string)) error {
	return s.look(ctx, Watch, dir, func(ctx context.Context) error {
		watching, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.life, cancel)()
		err := s.inner.Watch(watching, dir, ready, func(path string) {
			if s.hold(watching, s.life, 0) == nil {
				changed(path)
			}
		})
		if s.life.Err() != nil {
			return fmt.Errorf("watch %s: %w", dir, ErrKilled)
		}
		return err
	})
}

// Limits are the inner store's.
func (s *Store) Limits() store.Limits { return s.inner.Limits() }

// String is the inner store's.
func (s *Store) String() string { return s.inner.String() }
