// Package store is the interface between SMQ and the place where it keeps
// everything: a tree of files. Backends are in the packages below it (dir,
// seaweed, mem), storetest is the suite that each of them passes, fault wraps
// any of them and makes it fail.
//
// # Outcomes
//
// Whatever changes the store ends in one of four ways, which a backend never
// mixes up:
//
//   - nil: it is applied and, as far as the backend's URL asks for it, durable;
//   - smq.ErrExists or smq.ErrConflict: somebody was there before, and the call
//     changed nothing. That somebody may be an earlier attempt of the caller;
//   - ErrAmbiguous: it may have been applied, may not have been, and may yet be
//     applied at any later time. Only looking at the path can tell, and only
//     "it is there" is an answer;
//   - any other error: it is not applied and never will be.
//
// # Cancellation
//
// A call whose context ends returns soon, with an error that wraps the
// context's. For calls that change something that error is ErrAmbiguous too,
// unless the backend knows that nothing was applied.
//
// # Paths
//
// Paths are absolute, slash-separated and clean ("/topics/default/t"); CheckPath
// says what is allowed, and arguments named dir may be the root too. Any other
// path is refused with smq.ErrInvalid by every method. Folders come into being
// with the first file below them, and an empty or absent folder lists as empty.
// Nothing lies below a file: to read there finds nothing, to write there is an
// smq.ErrInvalid. Names sort bytewise.
package store

import (
	"context"
	"errors"
	"time"
)

// ErrAmbiguous means that a change may or may not have been applied, or may
// still be (see Outcomes above).
var ErrAmbiguous = errors.New("outcome unknown")

// MaxSmall is the largest file, in bytes, that Replace writes and Read reads.
const MaxSmall = 16 << 20

// Version identifies the content of a small file for Replace. It is opaque;
// the empty version stands for "there is no such file". What two calls of
// Replace wrote has two versions, also when it is the same bytes, and also when
// the file was removed in between.
type Version string

// Info describes a file or a folder.
type Info struct {
	Name     string    // the last element of its path
	Size     int64     // bytes; 0 for a folder
	Dir      bool      // it is a folder
	Modified time.Time // by the store's own clock, to the second or better
}

// Piece is a run of uploaded bytes, as the backend names it.
type Piece struct {
	ID     string `json:"id"`     // the backend's name for it
	Size   int64  `json:"size"`   // bytes
	CRC32C uint32 `json:"crc32c"` // Castagnoli, of the bytes as received
}

// Ref points to uploaded bytes that no path names yet. It is plain data, so a
// client may send it to another process that uses the same store.
//
// Exactly one file may take a Ref over: after a Create that named it succeeded
// (or may have), no other path may be created with it.
type Ref struct {
	Pieces []Piece `json:"pieces"`
}

// Size is the length of what the reference points to, in bytes.
func (r Ref) Size() int64 {
	var n int64
	for _, p := range r.Pieces {
		n += p.Size
	}
	return n
}

// Part is a run of a file's content: Bytes, or what Ref points to when Bytes
// is nil.
type Part struct {
	Bytes []byte
	Ref   *Ref
}

// Bytes makes content of slices, in order. They are not copied and must not
// change until the call that takes them has returned.
func Bytes(b ...[]byte) []Part {
	parts := make([]Part, len(b))
	for i := range b {
		parts[i].Bytes = b[i]
	}
	return parts
}

// Refs makes content of references, in order.
func Refs(r ...Ref) []Part {
	parts := make([]Part, len(r))
	for i := range r {
		parts[i].Ref = &r[i]
	}
	return parts
}

// ContentSize is the length of content in bytes.
func ContentSize(content []Part) int64 {
	var n int64
	for _, p := range content {
		if p.Ref != nil {
			n += p.Ref.Size()
		} else {
			n += int64(len(p.Bytes))
		}
	}
	return n
}

// Limits are a backend's sizes, for callers who shape their writes.
type Limits struct {
	// Inline is the content up to which Create is a single round trip. What
	// is larger is better uploaded first, so that creates that must follow
	// one another take little time each.
	Inline int64
	// Piece is the size of upload, in bytes, that the backend moves fastest.
	Piece int64
}

// Store is a tree of files. All methods may be called by many goroutines at
// once, and by many processes on the same store.
type Store interface {
	// Create makes the file at path with the given content, whole or not at
	// all, unless something is there. Of any number of concurrent calls for
	// one path, in any processes, at most one returns nil.
	//
	// Errors: smq.ErrExists, also on a repeat of a call that was applied,
	// and whatever the references point to by then; smq.ErrNotFound when a
	// reference points to nothing; smq.ErrNoSpace; ErrAmbiguous. It is not
	// retried inside after an ambiguous attempt.
	Create(ctx context.Context, path string, content []Part) error

	// Replace makes the file at path hold data, in one step, provided that
	// its version is the given one (the empty one: provided that there is no
	// file), and returns the new version. Of concurrent calls with one
	// version at most one returns nil. For small files (up to MaxSmall).
	//
	// Errors: smq.ErrConflict when the version is another, also on a repeat
	// of a call that was applied; smq.ErrTooLarge; smq.ErrNoSpace;
	// ErrAmbiguous. Where a folder is, smq.ErrConflict or smq.ErrInvalid.
	Replace(ctx context.Context, path string, data []byte, version Version) (Version, error)

	// Read returns a small file whole, with its version. Files made by
	// Create can be read too. smq.ErrNotFound when there is no file,
	// smq.ErrTooLarge when it is larger than MaxSmall.
	Read(ctx context.Context, path string) ([]byte, Version, error)

	// ReadAt fills p from the file's bytes at off on, as io.ReaderAt does:
	// fewer bytes than len(p) come with io.EOF. Errors: smq.ErrNotFound, and
	// smq.ErrCorrupt when the file is there but some of its bytes are lost.
	ReadAt(ctx context.Context, path string, p []byte, off int64) (int, error)

	// Stat describes the file or folder at path. smq.ErrNotFound when there
	// is none. Whatever Create or Replace finished before, in any process,
	// is seen.
	Stat(ctx context.Context, path string) (Info, error)

	// List returns up to limit entries of the folder whose names sort after
	// the given one, in bytewise order; limit <= 0 means all. Fewer entries
	// than limit mean that no more of them follow. Whatever
	// Create finished before, in any process, is listed. Names that begin
	// with a dot are the backend's own and never listed.
	List(ctx context.Context, dir, after string, limit int) ([]Info, error)

	// Remove deletes a file, or an empty folder. Absence is a success, so a
	// repeat is one too. smq.ErrConflict when a folder is not empty.
	Remove(ctx context.Context, path string) error

	// RemoveAll deletes a folder with all below it, or a file. It is not atomic:
	// after an error some of it may be left, and a repeat goes on. Absence
	// is a success. The root is refused with smq.ErrInvalid.
	RemoveAll(ctx context.Context, dir string) error

	// Upload stores bytes that no path names yet and returns the reference
	// to them. A failed or repeated call leaves, at worst, bytes that nobody
	// refers to. Uploads need no order and may overlap.
	Upload(ctx context.Context, data ...[]byte) (Ref, error)

	// Discard deletes the bytes of a reference that no file has taken over.
	// Absence is a success. It is best effort: what is left behind costs
	// only space.
	Discard(ctx context.Context, ref Ref) error

	// Watch calls changed with the path of each file below dir that is
	// created, replaced or removed after Watch has called ready, until ctx
	// ends or the watch breaks, and returns why. Calls may repeat and merge
	// and come late; after a break, or a call with the path dir itself
	// (something may have been missed), the caller looks for itself.
	// changed is called from one goroutine and must not block for long.
	Watch(ctx context.Context, dir string, ready func(), changed func(path string)) error

	// Limits says which sizes suit the backend.
	Limits() Limits

	// String is the URL of the store, without secrets.
	String() string

	// Close releases what the store holds in this process. Calls that are
	// under way, or come later, may fail.
	Close() error
}
