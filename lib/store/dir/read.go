package dir

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

// errIsFolder says that a folder is where a file was looked for.
var errIsFolder = fmt.Errorf("%w: it is a folder", smq.ErrNotFound)

// Read returns a small file.
func (s *Store) Read(ctx context.Context, path string) ([]byte, store.Version, error) {
	if err := store.CheckPath(path); err != nil {
		return nil, "", err
	}
	if err := s.enter(ctx, "read", path); err != nil {
		return nil, "", err
	}
	data, info, err := s.readSmall(path)
	if err != nil {
		return nil, "", fmt.Errorf("read %s: %w", path, err)
	}
	return data, versionOf(info.ModTime(), sha256.Sum256(data)), nil
}

// readSmall reads a file whole. What is too large it only describes.
func (s *Store) readSmall(path string) ([]byte, fs.FileInfo, error) {
	if err := s.checkFolder(path); err != nil {
		return nil, nil, err
	}
	f, info, err := s.open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if info.Size() > store.MaxSmall {
		return nil, info, fmt.Errorf("%w: %d bytes, the limit is %d", smq.ErrTooLarge, info.Size(), store.MaxSmall)
	}
	data := make([]byte, info.Size())
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, nil, lost(err)
	}
	return data, info, nil
}

// ReadAt reads a part of a file.
func (s *Store) ReadAt(ctx context.Context, path string, p []byte, off int64) (int, error) {
	if err := store.CheckPath(path); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, fmt.Errorf("read %s: %w offset %d", path, smq.ErrInvalid, off)
	}
	if err := s.enter(ctx, "read", path); err != nil {
		return 0, err
	}
	f, err := s.use(path)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", path, err)
	}
	defer s.files.release(f)
	n, err := f.file.ReadAt(p, off)
	if err != nil && err != io.EOF {
		return n, fmt.Errorf("read %s: %w", path, lost(err))
	}
	return n, err
}

// use returns the open file that is at the path now.
func (s *Store) use(path string) (*openFile, error) {
	if err := s.checkFolder(path); err != nil {
		return nil, err
	}
	now, err := os.Lstat(s.native(path))
	if err != nil {
		return nil, absent(err)
	}
	if f := s.files.get(path, now); f != nil {
		return f, nil
	}
	f, info, err := s.open(path)
	if err != nil {
		return nil, err
	}
	return s.files.add(path, f, info), nil
}

// open opens a file, and nothing else than one.
func (s *Store) open(path string) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(s.native(path), os.O_RDONLY|openFlags, 0)
	if isLink(err) {
		return nil, nil, fmt.Errorf("%w: %s is a link, which a store does not follow", smq.ErrInvalid, path)
	}
	if err != nil {
		return nil, nil, absent(err)
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case info.IsDir():
		err = errIsFolder
	case !info.Mode().IsRegular():
		err = notPlain(path, info)
	default:
		return f, info, nil
	}
	return nil, nil, errors.Join(err, f.Close())
}

// checkFolder sees that only plain folders lead to the path. Where none does,
// there is nothing.
func (s *Store) checkFolder(path string) error {
	err := s.folders.check(parent(path))
	if err == errNoFolder || err == errBelowFile {
		return smq.ErrNotFound
	}
	return err
}

// absent gives the absence of a file, or of its folder, its kind.
func absent(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return smq.ErrNotFound
	}
	return err
}

// lost gives the failure to read what is there its kind.
func lost(err error) error {
	if errors.Is(err, syscall.EIO) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: %w", smq.ErrCorrupt, err)
	}
	return err
}

// Stat describes a file or a folder.
func (s *Store) Stat(ctx context.Context, path string) (store.Info, error) {
	if err := store.CheckPath(path); err != nil {
		return store.Info{}, err
	}
	if err := s.enter(ctx, "stat", path); err != nil {
		return store.Info{}, err
	}
	if err := s.checkFolder(path); err != nil {
		return store.Info{}, fmt.Errorf("stat %s: %w", path, err)
	}
	info, err := os.Lstat(s.native(path))
	if err != nil {
		return store.Info{}, fmt.Errorf("stat %s: %w", path, absent(err))
	}
	return describe(path, info)
}

func describe(path string, info fs.FileInfo) (store.Info, error) {
	i := store.Info{Name: info.Name(), Size: info.Size(), Dir: info.IsDir(), Modified: info.ModTime()}
	switch {
	case i.Dir:
		i.Size = 0
	case !info.Mode().IsRegular():
		return store.Info{}, notPlain(path, info)
	}
	return i, nil
}
