package seaweed

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/seaweedmq/smq/lib/smq"
)

const (
	// fetchTimeout bounds one request for bytes.
	fetchTimeout = 10 * time.Second
	// fetchPatience bounds the repeats while no server that has a piece answers.
	fetchPatience = 5 * time.Second
	// maxList bounds a list of extents, in bytes.
	maxList = 64 << 20
)

// errLost means that every server that should have a piece answered that it has
// not, or has it damaged.
var errLost = fmt.Errorf("%w: a piece is lost", smq.ErrCorrupt)

// ask sends a request about a piece to a volume server. The caller drains the
// answer.
func (s *Store) ask(ctx context.Context, method, host string, id fileID, byteRange string) (*http.Response, error) {
	u := url.URL{Scheme: "http", Host: host, Path: "/" + id.String()}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
	if err != nil {
		return nil, err
	}
	if byteRange != "" {
		req.Header.Set("Range", byteRange)
	}
	resp, err := s.http.Do(req)
	if err != nil {
		// Not wrapped: it may be of a deadline that is not the caller's.
		return nil, fmt.Errorf("%w: %v", smq.ErrUnavailable, err)
	}
	return resp, nil
}

// fetch fills p from a piece, at off within it. errLost when no server has it,
// smq.ErrUnavailable when those that may have it do not answer.
func (s *Store) fetch(ctx context.Context, x extent, p []byte, off int64) error {
	return s.fromAny(ctx, x.id, func(ctx context.Context, host string) error {
		return s.fetchFrom(ctx, host, x, p, off)
	})
}

// fetchWhole returns a piece whose size is not known.
func (s *Store) fetchWhole(ctx context.Context, id fileID) (b []byte, err error) {
	err = s.fromAny(ctx, id, func(ctx context.Context, host string) error {
		resp, err := s.ask(ctx, http.MethodGet, host, id, "")
		if err != nil {
			return err
		}
		defer drain(resp)
		if resp.StatusCode != http.StatusOK {
			return lostOrComplaint(resp)
		}
		b, err = io.ReadAll(io.LimitReader(resp.Body, maxList))
		return err
	})
	return b, err
}

// fromAny calls do with the servers that have a piece, until one call
// succeeds. When the piece is in none of the places known, it asks where the
// volume is now; when no server answers, it tries for a while.
func (s *Store) fromAny(ctx context.Context, id fileID, do func(ctx context.Context, host string) error) error {
	fresh := false
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		asked := fresh
		fresh = true
		err := s.fromEach(ctx, id, asked, do)
		if err == nil {
			return struct{}{}, nil
		}
		if ctx.Err() != nil || asked && !errors.Is(err, smq.ErrUnavailable) {
			return struct{}{}, backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(pauses()), backoff.WithMaxElapsedTime(fetchPatience))
	if err != nil && ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
		return wrap(ctx.Err(), "%v", err)
	}
	return err
}

// fromEach makes one round. It is unavailable rather than lost if any server
// did not answer, since that one may have it.
func (s *Store) fromEach(ctx context.Context, id fileID, fresh bool, do func(ctx context.Context, host string) error) error {
	hosts, err := s.places.of(ctx, id.volume, fresh)
	if err != nil {
		return err
	}
	for _, host := range hosts {
		tctx, cancel := context.WithTimeout(ctx, fetchTimeout)
		e := do(tctx, host)
		cancel()
		if e == nil {
			return nil
		}
		e = wrap(e, "piece %s", id)
		if ctx.Err() != nil {
			return e
		}
		if err == nil || errors.Is(err, errLost) {
			err = e
		}
	}
	return err
}

// fetchFrom fills p from one server. A server that finds a part damaged just
// hangs up; of the whole piece it says so.
func (s *Store) fetchFrom(ctx context.Context, host string, x extent, p []byte, off int64) error {
	if off == 0 && int64(len(p)) == x.size {
		return s.fetchWholeFrom(ctx, host, x, p)
	}
	byteRange := fmt.Sprintf("bytes=%d-%d", off, off+int64(len(p))-1)
	err := s.fill(ctx, host, x.id, byteRange, p)
	if err == nil || errors.Is(err, errLost) || ctx.Err() != nil {
		return err
	}
	whole := make([]byte, x.size)
	if e := s.fetchWholeFrom(ctx, host, x, whole); e != nil {
		return e
	}
	copy(p, whole[off:])
	return nil
}

func (s *Store) fetchWholeFrom(ctx context.Context, host string, x extent, p []byte) error {
	if err := s.fill(ctx, host, x.id, "", p); err != nil {
		return err
	}
	if x.checked && crc32.Checksum(p, castagnoli) != x.crc {
		return fmt.Errorf("%w: volume server %s sends bytes with another checksum", errLost, host)
	}
	return nil
}

// fill fills p with the answer to one request.
func (s *Store) fill(ctx context.Context, host string, id fileID, byteRange string, p []byte) error {
	want := http.StatusOK
	if byteRange != "" {
		want = http.StatusPartialContent
	}
	resp, err := s.ask(ctx, http.MethodGet, host, id, byteRange)
	if err != nil {
		return err
	}
	defer drain(resp)
	if resp.StatusCode != want {
		return lostOrComplaint(resp)
	}
	if resp.ContentLength >= 0 && resp.ContentLength != int64(len(p)) {
		return fmt.Errorf("%w: volume server %s sends %d bytes instead of %d", errLost, host, resp.ContentLength, len(p))
	}
	if _, err := io.ReadFull(resp.Body, p); err != nil {
		return fmt.Errorf("%w: volume server %s: %v", smq.ErrUnavailable, host, err)
	}
	return nil
}

// lostOrComplaint reads an answer without the bytes. A server that finds the
// bytes on its disk damaged says so as an error of its own.
func lostOrComplaint(resp *http.Response) error {
	switch resp.StatusCode {
	case http.StatusNotFound, http.StatusRequestedRangeNotSatisfiable, http.StatusOK:
		return fmt.Errorf("%w: volume server %s: %s", errLost, resp.Request.URL.Host, resp.Status)
	}
	err := complaint(resp)
	if isDamaged(err.Error()) {
		return fmt.Errorf("%w: %v", errLost, err)
	}
	return err
}

// verify checks that a reference's piece is there as the reference says.
// smq.ErrNotFound when it is not, smq.ErrCorrupt when it is another.
func (s *Store) verify(ctx context.Context, id fileID, size int64, sum uint32) error {
	err := s.fromAny(ctx, id, func(ctx context.Context, host string) error {
		resp, err := s.ask(ctx, http.MethodHead, host, id, "")
		if err != nil {
			return err
		}
		defer drain(resp)
		if resp.StatusCode != http.StatusOK {
			return lostOrComplaint(resp)
		}
		if resp.ContentLength != size || etag(resp) != formatCRC(sum) {
			return fmt.Errorf("%w: the reference is to %d bytes with checksum %s, stored are %d bytes with checksum %s",
				smq.ErrCorrupt, size, formatCRC(sum), resp.ContentLength, etag(resp))
		}
		return nil
	})
	if errors.Is(err, errLost) {
		return fmt.Errorf("%w: the reference points to nothing: %v", smq.ErrNotFound, err)
	}
	return err
}

// damagedWords are in what volume servers say of bytes that fail their check.
var damagedWords = []string{"corrupted", "checksum", "size mismatch"}

func isDamaged(message string) bool {
	message = strings.ToLower(message)
	return slices.ContainsFunc(damagedWords, func(w string) bool { return strings.Contains(message, w) })
}
