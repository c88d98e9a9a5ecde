package seaweed

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/sync/errgroup"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

const (
	// putTimeout bounds one attempt to put a piece.
	putTimeout = 30 * time.Second
	// putTries is how many volumes are tried for a piece.
	putTries = 5
	// maxComplaint is how much of an error's text is read.
	maxComplaint = 512
)

// Upload stores bytes that no path names yet.
func (s *Store) Upload(ctx context.Context, data ...[]byte) (store.Ref, error) {
	if err := ctx.Err(); err != nil {
		return store.Ref{}, err
	}
	pieces, err := s.putAll(ctx, data)
	if err != nil {
		return store.Ref{}, wrap(err, "upload %d bytes", run(data).size())
	}
	return store.Ref{Pieces: pieces}, nil
}

// putAll stores a run as pieces, several at once. After an error it takes back
// what it has stored.
func (s *Store) putAll(ctx context.Context, data run) ([]store.Piece, error) {
	parts := data.pieces(pieceSize)
	pieces := make([]store.Piece, len(parts))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i, part := range parts {
		g.Go(func() (err error) {
			pieces[i], err = s.put(gctx, part)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		s.takeBack(ctx, pieces)
		return nil, err
	}
	return pieces, nil
}

// put stores one piece, and tries another volume when one fails: what a failed
// attempt may have left is under a name that nobody will use.
func (s *Store) put(ctx context.Context, part run) (store.Piece, error) {
	sum := part.crc()
	return backoff.Retry(ctx, func() (store.Piece, error) {
		at, err := s.ids.take(ctx)
		if err != nil {
			return store.Piece{}, backoff.Permanent(err)
		}
		if err := s.putAt(ctx, at, part, sum); err != nil {
			s.ids.distrust(at.id.volume)
			if ctx.Err() != nil {
				err = backoff.Permanent(fmt.Errorf("%w: %v", ctx.Err(), err))
			}
			return store.Piece{}, err
		}
		return store.Piece{ID: at.id.String(), Size: part.size(), CRC32C: sum}, nil
	}, backoff.WithBackOff(pauses()), backoff.WithMaxTries(putTries))
}

// putAt sends a piece to its volume server and compares what arrived. The type
// keeps the server from guessing one and compressing what looks like text.
func (s *Store) putAt(ctx context.Context, at slot, part run, sum uint32) error {
	ctx, cancel := context.WithTimeout(ctx, putTimeout)
	defer cancel()
	u := url.URL{Scheme: "http", Host: at.host, Path: at.path}
	if s.config.sync == syncAlways || s.config.sync == syncByRule && at.fsync {
		u.RawQuery = "fsync=true"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, u.String(), part.reader())
	if err != nil {
		return err
	}
	req.ContentLength = part.size()
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(part.reader()), nil }
	req.Header.Set("Content-Type", "application/octet-stream")
	if at.token != "" {
		req.Header.Set("Authorization", "Bearer "+at.token)
	}
	resp, err := s.http.Do(req)
	if err != nil {
		// Not wrapped: it may be of a deadline that is not the caller's.
		return fmt.Errorf("%w: %v", smq.ErrUnavailable, err)
	}
	defer drain(resp)
	if resp.StatusCode/100 != 2 {
		return complaint(resp)
	}
	if got := etag(resp); got != formatCRC(sum) {
		return fmt.Errorf("%w: the volume server %s received a piece with checksum %q, sent was %s", smq.ErrCorrupt, at.host, got, formatCRC(sum))
	}
	return nil
}

// complaint turns a volume server's refusal into an error.
func complaint(resp *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxComplaint)) // what there is of it
	m := strings.TrimSpace(string(body))
	kind := smq.ErrUnavailable
	if isFull(m) {
		kind = smq.ErrNoSpace
	}
	return fmt.Errorf("%w: volume server %s: %s: %s", kind, resp.Request.URL.Host, resp.Status, m)
}

// drain lets the connection be used again.
func drain(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, maxComplaint) // else it is closed
	resp.Body.Close()
}

func etag(resp *http.Response) string { return strings.Trim(resp.Header.Get("ETag"), `"`) }

// formatCRC is a checksum as volume servers write it.
func formatCRC(sum uint32) string { return fmt.Sprintf("%08x", sum) }

// Discard deletes uploaded bytes.
func (s *Store) Discard(ctx context.Context, ref store.Ref) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for _, p := range ref.Pieces {
		g.Go(func() error { return s.discard(gctx, p) })
	}
	err := g.Wait()
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %v", ctx.Err(), err)
	}
	return wrap(err, "discard a reference")
}

func (s *Store) discard(ctx context.Context, p store.Piece) error {
	id, err := parseFileID(p.ID)
	if err != nil {
		return nil // it names nothing
	}
	hosts, err := s.places.of(ctx, id.volume, false)
	if err != nil {
		return err
	}
	var last error
	for _, host := range hosts { // each of them deletes on the others too
		if last = s.deleteAt(ctx, host, id); last == nil {
			return nil
		}
	}
	s.places.known.remove(id.volume)
	return last
}

func (s *Store) deleteAt(ctx context.Context, host string, id fileID) error {
	resp, err := s.ask(ctx, http.MethodDelete, host, id, "")
	if err != nil {
		return err
	}
	defer drain(resp)
	if resp.StatusCode/100 != 2 && resp.StatusCode != http.StatusNotFound {
		return complaint(resp)
	}
	return nil
}

// takeBackTimeout bounds the clean-up after a call that failed, perhaps because
// its context has ended.
const takeBackTimeout = 500 * time.Millisecond

// takeBack discards pieces that a call has stored and nobody has seen. What
// cannot be discarded costs only space.
func (s *Store) takeBack(ctx context.Context, pieces []store.Piece) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeBackTimeout)
	defer cancel()
	for _, p := range pieces {
		if p.ID == "" {
			continue
		}
		if err := s.discard(ctx, p); err != nil {
			s.log.Warn("a piece that nothing refers to is left behind", "piece", p.ID, "err", err)
			return
		}
	}
}
