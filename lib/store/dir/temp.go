package dir

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

// The names in .tmp: one of these and 16 random bytes in hexadecimal.
const (
	tempPrefix   = "t-"
	uploadPrefix = "u-"
	trashPrefix  = "x-"
)

const (
	writeSize  = 1 << 20   // bytes written between two looks at the context
	copySize   = 16 << 20  // bytes copied between two looks at the context
	gatherSize = 128 << 10 // small parts are gathered to writes of this size
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// temp is a file in .tmp that is being written.
type temp struct {
	s    *Store
	f    *os.File
	name string // of the system's
	crc  uint32 // of the bytes written, not of the pieces copied
	open bool
}

func (s *Store) tempName(prefix string) string {
	var b [16]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	return filepath.Join(s.root, tmpDir, prefix+hex.EncodeToString(b[:]))
}

func (s *Store) newTemp(prefix string) (*temp, error) {
	name := s.tempName(prefix)
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fileMode)
	if err != nil {
		return nil, err
	}
	return &temp{s: s, f: f, name: name, open: true}, nil
}

// writeTemp makes a temporary file that holds content. Nothing is left of it
// after an error.
func (s *Store) writeTemp(ctx context.Context, prefix string, content []store.Part) (*temp, error) {
	t, err := s.newTemp(prefix)
	if err != nil {
		return nil, err
	}
	if err := t.fill(ctx, content); err != nil {
		t.drop()
		return nil, err
	}
	return t, nil
}

func (t *temp) fill(ctx context.Context, content []store.Part) error {
	w := tempWriter{ctx, t}
	if len(content) == 1 && content[0].Ref == nil {
		_, err := w.Write(content[0].Bytes)
		return err
	}
	gather := bufio.NewWriterSize(w, int(min(store.ContentSize(content), gatherSize)))
	for _, part := range content {
		if part.Ref == nil {
			if _, err := gather.Write(part.Bytes); err != nil {
				return err
			}
			continue
		}
		if err := gather.Flush(); err != nil {
			return err
		}
		for _, p := range part.Ref.Pieces {
			if err := t.copyPiece(ctx, p); err != nil {
				return err
			}
		}
	}
	return gather.Flush()
}

// tempWriter writes to a temp until a context ends.
type tempWriter struct {
	ctx context.Context
	t   *temp
}

func (w tempWriter) Write(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		if err := w.ctx.Err(); err != nil {
			return n, err
		}
		chunk := p[n:min(n+writeSize, len(p))]
		var m int
		m, err = w.t.s.calls.write(w.t.f, chunk)
		w.t.crc = crc32.Update(w.t.crc, castagnoli, chunk[:m])
		n += m
	}
	return n, err
}

func (t *temp) copyPiece(ctx context.Context, p store.Piece) error {
	src, err := t.s.openPiece(p)
	if err != nil {
		return err
	}
	defer src.Close()
	for left := p.Size; left > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := t.s.calls.copy(t.f, src, min(left, copySize))
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("piece %s: %w: it has become shorter", p.ID, smq.ErrCorrupt)
		}
		if err != nil {
			return fmt.Errorf("copy piece %s: %w", p.ID, err)
		}
		left -= n
	}
	return nil
}

// seal makes the content durable. Nothing is written after it.
func (t *temp) seal() error {
	var err error
	if t.s.fsync {
		err = t.s.calls.sync(t.f)
	}
	return errors.Join(err, t.close())
}

func (t *temp) close() error {
	if !t.open {
		return nil
	}
	t.open = false
	return t.f.Close()
}

// drop deletes the temporary name. A file that has got another name keeps it.
func (t *temp) drop() {
	t.close()
	t.s.unlinkTemp(t.name)
}

// unlinkTemp deletes a name in .tmp. One that stays costs space until the sweep.
func (s *Store) unlinkTemp(name string) {
	if err := s.calls.remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Warn("a temporary file is left behind", "err", err)
	}
}

// pieceName is the system's name for a piece. Whatever is not a piece's ID, in
// form, points to nothing: it may come from anywhere.
func (s *Store) pieceName(id string) (string, bool) {
	if len(id) != 32 {
		return "", false
	}
	for _, c := range []byte(id) {
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			return "", false
		}
	}
	return filepath.Join(s.root, tmpDir, uploadPrefix+id), true
}

// openPiece opens an upload, which must be as long as the piece says.
func (s *Store) openPiece(p store.Piece) (*os.File, error) {
	name, ok := s.pieceName(p.ID)
	if !ok {
		return nil, noPiece(p)
	}
	f, err := os.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, noPiece(p)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = checkPiece(p, info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func checkPiece(p store.Piece, info fs.FileInfo) error {
	if !info.Mode().IsRegular() || info.Size() != p.Size {
		return fmt.Errorf("piece %s: %w: it is %s of %d bytes, not of %d", p.ID, smq.ErrCorrupt, info.Mode().Type(), info.Size(), p.Size)
	}
	return nil
}

func noPiece(p store.Piece) error {
	return fmt.Errorf("piece %q: %w", p.ID, smq.ErrNotFound)
}
