package dir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/seaweedmq/smq/lib/smq"
)

// folders looks after the store's folders: that they are there, that they are
// folders and not links elsewhere, that their names are durable. What this
// process has seen it need not look at again:
//
//   - That a folder was a plain one. It guards against accidents only, so it
//     does no harm when it is out of date.
//   - That its name is durable keeps until some folder is removed, in any
//     process. Whoever removes one changes the token in .lock/state first, and
//     holds the folder lock from there to the removal. So if the token is the
//     same before and after the folders were synced, read under that lock, none
//     was removed meanwhile. And if a folder was removed and made again before a
//     file got its name in it, then the token, read after that, has changed.
type folders struct {
	s *Store

	mu    sync.Mutex
	known map[string]known
	token uint64 // at which what is known to be durable is so
}

type known struct{ durable bool }

// maxKnown bounds the memory of folders; when it is reached all is forgotten.
const maxKnown = 1 << 14

func newFolders(s *Store) *folders {
	return &folders{s: s, known: map[string]known{}}
}

// errBelowFile says that a path has a file where a folder would have to be.
var errBelowFile = fmt.Errorf("%w path: a part of it is a file", smq.ErrInvalid)

// errNoFolder says that there is no such folder.
var errNoFolder = errors.New("no such folder")

func parent(path string) string {
	return path[:max(strings.LastIndexByte(path, '/'), 1)]
}

// check looks whether dir is there and a plain folder, as all above it.
// Otherwise it is errNoFolder, errBelowFile or an smq.ErrInvalid.
func (f *folders) check(dir string) error {
	if dir == "/" || f.isKnown(dir) {
		return nil
	}
	if err := f.check(parent(dir)); err != nil {
		return err
	}
	return f.look(dir)
}

func (f *folders) look(dir string) error {
	info, err := os.Lstat(f.s.native(dir))
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return errNoFolder
	case err != nil:
		return err
	case info.Mode().IsRegular():
		return errBelowFile
	case !info.IsDir():
		return notPlain(dir, info)
	}
	f.learn(dir)
	return nil
}

func notPlain(path string, info fs.FileInfo) error {
	return fmt.Errorf("%w: %s is neither a file nor a folder but %s, which a store does not follow", smq.ErrInvalid, path, info.Mode().Type())
}

// make makes dir and all above it, unless they are there. It fails as check
// does.
func (f *folders) make(dir string) error {
	for range maxRaces {
		err := f.makeOnce(dir)
		if !errors.Is(err, fs.ErrNotExist) && err != errNoFolder {
			return err
		}
	}
	return fmt.Errorf("%w: the folder %s is removed as fast as it is made", smq.ErrUnavailable, dir)
}

// maxRaces is how often a step is repeated that fails only when somebody
// removes a folder at the same time.
const maxRaces = 100

func (f *folders) makeOnce(dir string) error {
	if dir == "/" {
		return nil
	}
	err := f.s.calls.mkdir(f.s.native(dir))
	if errors.Is(err, fs.ErrNotExist) {
		if err := f.makeOnce(parent(dir)); err != nil {
			return err
		}
		err = f.s.calls.mkdir(f.s.native(dir))
	}
	switch {
	case err == nil:
		f.forget(dir) // that is, the one that was there before
		return nil
	case errors.Is(err, fs.ErrExist):
		return f.look(dir)
	case errors.Is(err, syscall.ENOTDIR):
		return errBelowFile
	default:
		return err
	}
}

// sync makes the names in dir durable, and the names of dir and all above it.
// A folder that is gone has been removed since, with what was in it.
func (f *folders) sync(dir string) error {
	if !f.s.fsync {
		return nil
	}
	token, err := f.s.locks.token()
	if err != nil {
		return err
	}
	if f.isDurable(dir, token) {
		return ignoreGone(f.syncOne(dir))
	}
	before, err := f.s.locks.quietToken()
	if err != nil {
		return err
	}
	if err := f.syncUp(dir, before); err != nil {
		return ignoreGone(err)
	}
	after, err := f.s.locks.quietToken()
	if err == nil && before == after {
		f.learnDurable(dir, after)
	}
	return err
}

func (f *folders) syncUp(dir string, token uint64) error {
	if err := f.syncOne(dir); err != nil {
		return err
	}
	for d := dir; !f.isDurable(d, token); d = parent(d) {
		if err := f.syncOne(parent(d)); err != nil {
			return err
		}
	}
	return nil
}

func (f *folders) syncOne(dir string) error {
	return f.s.calls.syncDir(f.s.native(dir))
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (f *folders) isKnown(dir string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ok := f.known[dir]
	return ok
}

// isDurable says whether the name of dir is known to be durable, and of all
// above it. The root's is: prepare has seen to it.
func (f *folders) isDurable(dir string, token uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return dir == "/" || token == f.token && f.known[dir].durable
}

func (f *folders) learn(dir string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.known) > maxKnown {
		clear(f.known)
	}
	f.known[dir] = known{durable: f.known[dir].durable}
}

func (f *folders) learnDurable(dir string, token uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if token != f.token || len(f.known) > maxKnown {
		clear(f.known)
		f.token = token
	}
	for d := dir; d != "/"; d = parent(d) {
		f.known[d] = known{durable: true}
	}
}

func (f *folders) forget(dir string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.known, dir)
}
