package seaweed

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	pb "github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seaweedmq/smq/lib/smq"
)

const (
	// patience bounds the repeats of a call when its context has no deadline.
	patience = 15 * time.Second
	// checkTimeout bounds the first exchange with a filer.
	checkTimeout = 5 * time.Second
	// readTimeout bounds one attempt of a call that only reads, so that
	// another filer gets its turn when one is frozen.
	readTimeout = 10 * time.Second
)

// rpc is one call on a filer.
type rpc func(ctx context.Context, client pb.SeaweedFilerClient) error

// attempt is how an rpc ended.
type attempt struct {
	err  error
	sent bool // the request had left, so the filer may have acted on it
}

// filers are the connections to the filers of a URL. All calls go to one of
// them, in the URL's order, until it fails.
type filers struct {
	log   *slog.Logger
	opts  []grpc.DialOption
	all   []*filer
	inUse atomic.Int64 // index into all

	telling rate.Sometimes // limits what is logged while all of them fail

	mu    sync.Mutex
	store *int32 // signature of the store behind them, once one has told it
}

// filer is one of them.
type filer struct {
	addr     string
	conn     *grpc.ClientConn
	client   pb.SeaweedFilerClient
	checked  atomic.Bool
	checking chan struct{} // a lock that can be waited for with a context
}

// dial makes the connections; none is used yet.
func dial(addrs []string, log *slog.Logger, opts []grpc.DialOption) (*filers, error) {
	f := &filers{log: log, opts: opts, telling: rate.Sometimes{Interval: time.Second}}
	for _, addr := range addrs {
		conn, err := grpc.NewClient(grpcAddress(addr), opts...)
		if err != nil {
			f.close()
			return nil, fmt.Errorf("%w filer %s: %w", smq.ErrInvalid, addr, err)
		}
		f.all = append(f.all, &filer{
			addr: addr, conn: conn, client: pb.NewSeaweedFilerClient(conn), checking: make(chan struct{}, 1),
		})
	}
	return f, nil
}

func (f *filers) close() error {
	var first error
	for _, t := range f.all {
		if err := t.conn.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

func (f *filers) current() *filer { return f.all[f.inUse.Load()] }

// turnFrom makes another filer the one in use, if t still is.
func (f *filers) turnFrom(t *filer, err error) {
	if len(f.all) < 2 {
		return
	}
	at := slices.Index(f.all, t)
	next := (at + 1) % len(f.all)
	if f.inUse.CompareAndSwap(int64(at), int64(next)) {
		f.telling.Do(func() {
			f.log.Warn("filer failed, turning to the next", "filer", t.addr, "next", f.all[next].addr, "err", err)
		})
	}
}

// ready checks a filer before its first use: that it is new enough to honour
// conditions, and that it has the same store as the others.
func (f *filers) ready(ctx context.Context, t *filer) error {
	if t.checked.Load() {
		return nil
	}
	select {
	case t.checking <- struct{}{}:
		defer func() { <-t.checking }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if t.checked.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	conf, err := t.client.GetFilerConfiguration(ctx, &pb.GetFilerConfigurationRequest{})
	if err != nil {
		return fmt.Errorf("filer %s: %w", t.addr, err)
	}
	if err := checkVersion(conf); err != nil {
		return fmt.Errorf("filer %s: %w", t.addr, err)
	}
	if err := f.checkStore(t, conf.GetSignature()); err != nil {
		return err
	}
	t.checked.Store(true)
	return nil
}

// checkStore compares the signature of a filer's store, which is kept in that
// store, with that of the others.
func (f *filers) checkStore(t *filer, signature int32) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.store == nil {
		f.store = &signature
	}
	if *f.store != signature {
		return fmt.Errorf("%w: the filer %s does not share the store of the others (PostgreSQL, etcd, …), so it could let two writers win; "+
			"name one filer, or give them one store and restart them", smq.ErrInvalid, t.addr)
	}
	return nil
}

// read makes a call that changes nothing, and repeats it while that may help.
// Its error wraps the context's when that has ended, or smq.ErrUnavailable when
// no filer answered; anything else is what a filer answered.
func (f *filers) read(ctx context.Context, do rpc) error {
	return f.readWithin(ctx, readTimeout, do)
}

func (f *filers) readWithin(ctx context.Context, limit time.Duration, do rpc) error {
	a := f.try(ctx, func(a attempt) bool { return transient(a.err) }, func(ctx context.Context, client pb.SeaweedFilerClient) error {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return do(ctx, client)
	})
	return readError(ctx, a)
}

// mutate makes a call that changes something. It is repeated only as long as
// nothing has left for a filer. Once something has, an error is
// store.ErrAmbiguous, save for those by which a filer refuses without acting.
func (f *filers) mutate(ctx context.Context, do rpc) error {
	a := f.try(ctx, func(a attempt) bool { return !a.sent && transient(a.err) }, do)
	return mutateError(ctx, a)
}

// try makes attempts, in turn with all filers, until one succeeds or again says
// no or the time is up.
func (f *filers) try(ctx context.Context, again func(attempt) bool, do rpc) (last attempt) {
	if err := ctx.Err(); err != nil {
		return attempt{err: err}
	}
	// The error of Retry is no more than what last holds.
	_, _ = backoff.Retry(ctx, func() (struct{}, error) {
		t := f.current()
		last = f.once(ctx, t, do)
		if last.err == nil {
			return struct{}{}, nil
		}
		if ctx.Err() != nil || !again(last) && !f.refused(last) {
			return struct{}{}, backoff.Permanent(last.err)
		}
		f.turnFrom(t, last.err)
		return struct{}{}, last.err
	}, backoff.WithBackOff(pauses()), backoff.WithMaxElapsedTime(patience))
	return last
}

// refused reports whether ready refused a filer, with others to turn to.
func (f *filers) refused(a attempt) bool {
	return !a.sent && isInvalid(a.err) && len(f.all) > 1
}

func (f *filers) once(ctx context.Context, t *filer, do rpc) attempt {
	if err := f.ready(ctx, t); err != nil {
		return attempt{err: err}
	}
	ctx, sent := trackSending(ctx)
	err := do(ctx, t.client)
	return attempt{err: err, sent: sent.Load()}
}

// pauses are those between attempts.
func pauses() backoff.BackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval = 30 * time.Millisecond
	b.MaxInterval = time.Second
	return b
}

// transient reports whether another attempt, perhaps with another filer, may
// go better.
func transient(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Aborted, codes.Internal:
		return true
	}
	return false
}
