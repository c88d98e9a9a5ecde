package dir

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/gofrs/flock"
)

const (
	pathLocks  = 16        // paths share this many locks
	folderLock = pathLocks // held while a folder is removed; taken last
	allLocks   = pathLocks + 1

	// .lock/state holds a stamp of 8 bytes for each of the path locks, then
	// the token. It is as long as a disk's block from the start, so that no
	// write to it needs space: that would keep a full disk from being cleared.
	tokenAt   = 8 * pathLocks
	stateSize = 4096
)

// locks are held by one process and one goroutine at a time. A lock that its
// process dies with is free.
type locks struct {
	dir   string
	mu    [allLocks]sync.Mutex // so that of one process one thread waits for each file
	state *os.File
}

func newLocks(dir string) *locks { return &locks{dir: dir} }

// prepare makes all files, so that later no lock needs space.
func (l *locks) prepare() error {
	for i := range allLocks {
		f, err := os.OpenFile(l.file(i), os.O_CREATE|os.O_RDWR, fileMode)
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	state, err := os.OpenFile(filepath.Join(l.dir, "state"), os.O_CREATE|os.O_RDWR, fileMode)
	if err != nil {
		return err
	}
	// Only the last byte: another process may have begun to use the others.
	if _, err := state.WriteAt([]byte{'\n'}, stateSize-1); err != nil {
		return errors.Join(err, state.Close())
	}
	l.state = state
	return nil
}

func (l *locks) close() {
	if l.state != nil {
		l.state.Close()
	}
}

func (l *locks) file(i int) string {
	return filepath.Join(l.dir, fmt.Sprintf("%02x.lock", i))
}

// of says which lock guards a path.
func (l *locks) of(path string) int {
	h := fnv.New32a()
	io.WriteString(h, path)
	return int(h.Sum32() % pathLocks)
}

// lock waits for one of the locks.
func (l *locks) lock(i int) (unlock func(), err error) {
	l.mu[i].Lock()
	f := flock.New(l.file(i), flock.SetFlag(os.O_RDWR))
	for err = f.Lock(); errors.Is(err, syscall.EINTR); {
		err = f.Lock()
	}
	if err != nil {
		l.mu[i].Unlock()
		return nil, fmt.Errorf("lock %s: %w", f.Path(), err)
	}
	return func() {
		f.Close() // which cannot fail to unlock: the file is closed
		l.mu[i].Unlock()
	}, nil
}

// lockAll waits for all locks, in order.
func (l *locks) lockAll() (unlock func(), err error) {
	var unlocks []func()
	unlock = func() {
		for _, u := range unlocks {
			u()
		}
	}
	for i := range allLocks {
		u, err := l.lock(i)
		if err != nil {
			unlock()
			return nil, err
		}
		unlocks = append(unlocks, u)
	}
	return unlock, nil
}

// stamp is the last stamp that was given out under a path lock, which the
// caller holds.
func (l *locks) stamp(i int) (int64, error) {
	n, err := l.read(int64(8 * i))
	return int64(n), err
}

func (l *locks) setStamp(i int, stamp int64) error {
	return l.write(int64(8*i), uint64(stamp))
}

// token changes whenever a folder is about to be removed.
func (l *locks) token() (uint64, error) { return l.read(tokenAt) }

// newToken is called under the folder lock.
func (l *locks) newToken() error {
	var b [8]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	return l.write(tokenAt, binary.BigEndian.Uint64(b[:]))
}

// quietToken is the token at a moment when no folder is being removed: any
// removal that comes later changes it.
func (l *locks) quietToken() (uint64, error) {
	unlock, err := l.lock(folderLock)
	if err != nil {
		return 0, err
	}
	defer unlock()
	return l.token()
}

func (l *locks) read(off int64) (uint64, error) {
	var b [8]byte
	if _, err := l.state.ReadAt(b[:], off); err != nil {
		return 0, fmt.Errorf("read the store's lock state: %w", err)
	}
	return binary.BigEndian.Uint64(b[:]), nil
}

func (l *locks) write(off int64, value uint64) error {
	b := binary.BigEndian.AppendUint64(nil, value)
	if _, err := l.state.WriteAt(b, off); err != nil {
		return fmt.Errorf("write the store's lock state: %w", err)
	}
	return nil
}
