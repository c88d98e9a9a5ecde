package dir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

// Create writes a temporary file and gives it its name by a hard link; see the
// package's comment.
func (s *Store) Create(ctx context.Context, path string, content []store.Part) error {
	if err := store.CheckPath(path); err != nil {
		return err
	}
	c, err := s.change(ctx, "create", path)
	if err != nil {
		return err
	}
	if p, ok := onePiece(content); ok {
		return c.finish(ctx, func() error { return c.takeOver(p) })
	}
	pieces := piecesOf(content)
	t, err := s.writeTemp(ctx, tempPrefix, content)
	if err != nil {
		return c.cancel(c.orExists(err))
	}
	return c.finish(ctx, func() error {
		defer t.drop()
		if err := t.seal(); err != nil {
			return err
		}
		if err := c.publish(t.name); err != nil {
			return err
		}
		s.discard(pieces)
		return nil
	})
}

// onePiece reports whether content is a single piece and nothing else.
func onePiece(content []store.Part) (store.Piece, bool) {
	if len(content) != 1 || content[0].Ref == nil || len(content[0].Ref.Pieces) != 1 {
		return store.Piece{}, false
	}
	return content[0].Ref.Pieces[0], true
}

func piecesOf(content []store.Part) (pieces []store.Piece) {
	for _, part := range content {
		if part.Ref != nil {
			pieces = append(pieces, part.Ref.Pieces...)
		}
	}
	return pieces
}

// takeOver makes the file of an upload as it is.
func (c *change) takeOver(p store.Piece) error {
	name, ok := c.s.pieceName(p.ID)
	if !ok {
		return c.orExists(noPiece(p))
	}
	info, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return c.orExists(noPiece(p))
	}
	if err != nil {
		return err
	}
	if err := checkPiece(p, info); err != nil {
		return err
	}
	err = c.publish(name)
	if err == errTempGone {
		return c.orExists(noPiece(p))
	}
	if err == nil {
		c.s.unlinkTemp(name)
	}
	return err
}

// publish gives the file that is called name, in .tmp, its path as well, unless
// that is taken.
func (c *change) publish(name string) error {
	dir := parent(c.path)
	if err := c.s.folders.check(dir); err != nil && !errors.Is(err, errNoFolder) {
		return err
	}
	if err := c.begin(); err != nil {
		return err
	}
	err := c.link(name)
	switch {
	case err == nil, errors.Is(err, fs.ErrExist):
		if syncErr := c.s.folders.sync(dir); syncErr != nil {
			return unknown(syncErr)
		}
		if err != nil {
			return smq.ErrExists
		}
		return nil
	case uncertain(err):
		return unknown(err)
	default:
		return err
	}
}

// errTempGone says that somebody has deleted a file in .tmp. For an upload that
// may be another call that took it over.
var errTempGone = errors.New("the temporary file is gone")

// link makes the hard link, and the folders that are missing for it.
func (c *change) link(name string) error {
	for range maxRaces {
		err := c.s.calls.link(name, c.s.native(c.path))
		switch {
		case errors.Is(err, syscall.ENOTDIR):
			return errBelowFile
		case errors.Is(err, fs.ErrPermission), errors.Is(err, errors.ErrUnsupported):
			return fmt.Errorf("%w (does the file system have hard links?)", err)
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return errTempGone
		}
		if err := c.s.folders.make(parent(c.path)); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: its folder is removed as fast as it is made", smq.ErrUnavailable)
}

// orExists turns the absence of a piece into ErrExists when the path is taken:
// then it was, most likely, an earlier attempt that took the piece over.
func (c *change) orExists(err error) error {
	if !errors.Is(err, smq.ErrNotFound) {
		return err
	}
	if _, statErr := os.Lstat(c.s.native(c.path)); statErr != nil {
		return err
	}
	if err := c.s.folders.sync(parent(c.path)); err != nil {
		return unknown(err)
	}
	return smq.ErrExists
}

// Upload writes and syncs a file in .tmp, which its only piece names.
func (s *Store) Upload(ctx context.Context, data ...[]byte) (store.Ref, error) {
	c, err := s.change(ctx, "upload", "bytes")
	if err != nil {
		return store.Ref{}, err
	}
	content := store.Bytes(data...)
	size := store.ContentSize(content)
	if size == 0 {
		return store.Ref{}, c.cancel(nil)
	}
	t, err := s.writeTemp(ctx, uploadPrefix, content)
	if err != nil {
		return store.Ref{}, c.cancel(err)
	}
	err = c.finish(ctx, func() error {
		err := t.seal()
		if err == nil {
			err = c.begin()
		}
		if err != nil {
			t.drop()
		}
		return err
	})
	if err != nil {
		return store.Ref{}, err
	}
	id := strings.TrimPrefix(filepath.Base(t.name), uploadPrefix)
	return store.Ref{Pieces: []store.Piece{{ID: id, Size: size, CRC32C: t.crc}}}, nil
}

// Discard deletes uploads.
func (s *Store) Discard(ctx context.Context, ref store.Ref) error {
	c, err := s.change(ctx, "discard", "bytes")
	if err != nil {
		return err
	}
	pieces := append([]store.Piece(nil), ref.Pieces...)
	return c.finish(ctx, func() error {
		if err := c.begin(); err != nil {
			return err
		}
		s.discard(pieces)
		return nil
	})
}

func (s *Store) discard(pieces []store.Piece) {
	for _, p := range pieces {
		if name, ok := s.pieceName(p.ID); ok {
			s.unlinkTemp(name)
		}
	}
}
