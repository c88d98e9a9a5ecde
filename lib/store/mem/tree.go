package mem

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

// tree is what the handles share.
type tree struct {
	now func() time.Time

	mu       sync.Mutex // guards everything below
	root     *node
	pieces   map[string][]byte // uploaded and not taken over, by id
	count    uint64            // of versions and pieces so far
	watchers []*watcher
}

// node is a file or a folder. A file's data is never changed, only exchanged,
// so that it can be read outside of the lock.
type node struct {
	entries  map[string]*node // nil for a file
	names    []string         // of entries in order; nil after a change
	data     []byte
	version  store.Version
	modified time.Time
}

func newTree(now func() time.Time) *tree {
	return &tree{now: now, root: newFolder(now()), pieces: map[string][]byte{}}
}

func newFolder(now time.Time) *node {
	return &node{entries: map[string]*node{}, modified: now}
}

func (n *node) isDir() bool { return n.entries != nil }

func (n *node) info(name string) store.Info {
	return store.Info{Name: name, Size: int64(len(n.data)), Dir: n.isDir(), Modified: n.modified}
}

func (n *node) set(name string, child *node) {
	if n.entries[name] == nil {
		n.names = nil
	}
	n.entries[name] = child
}

func (n *node) unset(name string) {
	delete(n.entries, name)
	n.names = nil
}

func (n *node) sortedNames() []string {
	if n.names == nil {
		n.names = slices.Sorted(maps.Keys(n.entries))
	}
	return n.names
}

// find returns what is at a path, or nil.
func (t *tree) find(path string) *node {
	n := t.root
	if path == "/" {
		return n
	}
	for name := range strings.SplitSeq(path[1:], "/") {
		if n = n.entries[name]; n == nil {
			return nil
		}
	}
	return n
}

func split(path string) (dir, name string) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 1)], path[i+1:]
}

// put sets a file and makes the folders that it needs.
func (t *tree) put(path string, data []byte) (store.Version, error) {
	dir, name := split(path)
	parent := t.root
	if dir != "/" {
		for e := range strings.SplitSeq(dir[1:], "/") {
			child := parent.entries[e]
			if child == nil {
				child = newFolder(t.now())
				parent.set(e, child)
			}
			if !child.isDir() {
				return "", fmt.Errorf("%w path %s: %q in it is a file", smq.ErrInvalid, path, e)
			}
			parent = child
		}
	}
	t.count++
	n := &node{data: data, version: store.Version(fmt.Sprintf("v%d", t.count)), modified: t.now()}
	parent.set(name, n)
	t.notify(path)
	return n.version, nil
}

func (t *tree) create(path string, content []store.Part) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.find(path) != nil {
		return fmt.Errorf("create %s: %w", path, smq.ErrExists)
	}
	data, err := t.assemble(content)
	if err != nil {
		return fmt.Errorf("create %s: %w", path, err)
	}
	if _, err := t.put(path, data); err != nil {
		return err
	}
	for _, part := range content {
		if part.Ref != nil {
			t.forget(*part.Ref)
		}
	}
	return nil
}

// assemble makes one slice of content. What is a single piece is not copied.
func (t *tree) assemble(content []store.Part) ([]byte, error) {
	var runs [][]byte
	for _, part := range content {
		if part.Ref == nil {
			runs = append(runs, part.Bytes)
			continue
		}
		for _, p := range part.Ref.Pieces {
			data, ok := t.pieces[p.ID]
			if !ok {
				return nil, fmt.Errorf("piece %q: %w", p.ID, smq.ErrNotFound)
			}
			if int64(len(data)) != p.Size {
				return nil, fmt.Errorf("piece %q: %w: it is %d bytes long, not %d", p.ID, smq.ErrCorrupt, len(data), p.Size)
			}
			runs = append(runs, data)
		}
	}
	if len(runs) == 1 && content[0].Ref != nil {
		return runs[0], nil
	}
	return slices.Concat(runs...), nil
}

func (t *tree) replace(path string, data []byte, version store.Version) (store.Version, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var current store.Version
	if n := t.find(path); n != nil {
		if n.isDir() {
			return "", fmt.Errorf("replace %s: %w: it is a folder", path, smq.ErrInvalid)
		}
		current = n.version
	}
	if current != version {
		return "", fmt.Errorf("replace %s: %w: its version is %q, not %q", path, smq.ErrConflict, current, version)
	}
	return t.put(path, slices.Clone(data))
}

// file returns a file's bytes, which the caller only reads.
func (t *tree) file(path string) ([]byte, store.Version, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.find(path)
	if n == nil || n.isDir() {
		return nil, "", fmt.Errorf("read %s: %w", path, smq.ErrNotFound)
	}
	return n.data, n.version, nil
}

func (t *tree) stat(path string) (store.Info, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.find(path)
	if n == nil {
		return store.Info{}, fmt.Errorf("stat %s: %w", path, smq.ErrNotFound)
	}
	_, name := split(path)
	return n.info(name), nil
}

func (t *tree) list(dir, after string, limit int) []store.Info {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.find(dir)
	if n == nil {
		return nil
	}
	names := n.sortedNames()
	i, found := slices.BinarySearch(names, after)
	if found {
		i++
	}
	names = names[i:]
	if limit > 0 {
		names = names[:min(limit, len(names))]
	}
	infos := make([]store.Info, len(names))
	for i, name := range names {
		infos[i] = n.entries[name].info(name)
	}
	return infos
}

func (t *tree) remove(path string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.find(path)
	if n == nil {
		return nil
	}
	if len(n.entries) > 0 {
		return fmt.Errorf("remove %s: %w: the folder is not empty", path, smq.ErrConflict)
	}
	t.unlink(path, n)
	return nil
}

func (t *tree) removeAll(path string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.find(path); n != nil {
		t.unlink(path, n)
	}
}

// unlink takes a node out of its folder and tells of every file below it.
func (t *tree) unlink(path string, n *node) {
	dir, name := split(path)
	t.find(dir).unset(name)
	t.notifyAll(path, n)
}

func (t *tree) notifyAll(path string, n *node) {
	if !n.isDir() {
		t.notify(path)
		return
	}
	for _, name := range n.sortedNames() {
		t.notifyAll(path+"/"+name, n.entries[name])
	}
}

func (t *tree) upload(data []byte) (id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count++
	id = fmt.Sprintf("p%d", t.count)
	t.pieces[id] = data
	return id
}

func (t *tree) discard(ref store.Ref) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget(ref)
}

func (t *tree) forget(ref store.Ref) {
	for _, p := range ref.Pieces {
		delete(t.pieces, p.ID)
	}
}
