package dir

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

// List reads all names of a folder and describes those of the page: its memory
// goes with the limit, its time with the folder.
func (s *Store) List(ctx context.Context, dir, after string, limit int) ([]store.Info, error) {
	if err := store.CheckDir(dir); err != nil {
		return nil, err
	}
	if err := s.enter(ctx, "list", dir); err != nil {
		return nil, err
	}
	infos, err := s.list(ctx, dir, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	return infos, nil
}

func (s *Store) list(ctx context.Context, dir, after string, limit int) ([]store.Info, error) {
	if err := s.folders.check(dir); err == errNoFolder || err == errBelowFile {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var infos []store.Info
	for {
		want := limit - len(infos)
		names, err := s.namesAfter(ctx, dir, after, want)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			info, err := s.describeEntry(dir, name)
			if errors.Is(err, smq.ErrNotFound) {
				continue // removed since; another name takes its place in the page
			}
			if err != nil {
				return nil, err
			}
			infos = append(infos, info)
		}
		if limit <= 0 || len(names) < want || len(infos) == limit {
			return infos, nil
		}
		after = names[len(names)-1]
	}
}

func (s *Store) describeEntry(dir, name string) (store.Info, error) {
	path := "/" + name
	if dir != "/" {
		path = dir + path
	}
	info, err := s.calls.lstat(s.native(path))
	if err != nil {
		return store.Info{}, absent(err)
	}
	return describe(path, info)
}

// namesAfter returns the first names after the given one, in order, at most
// limit of them if that is positive.
func (s *Store) namesAfter(ctx context.Context, dir, after string, limit int) ([]string, error) {
	f, err := os.OpenFile(s.native(dir), os.O_RDONLY|openFlags, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var first names
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		batch, err := f.Readdirnames(1024)
		for _, name := range batch {
			if name > after && name[0] != '.' {
				first.add(name, limit)
			}
		}
		if err == io.EOF || errors.Is(err, fs.ErrNotExist) { // the folder is gone
			break
		}
		if err != nil {
			return nil, lost(err)
		}
	}
	slices.Sort(first)
	return first, nil
}

// names is a heap of names with the last in order on top.
type names []string

func (n names) Len() int           { return len(n) }
func (n names) Less(i, j int) bool { return n[i] > n[j] }
func (n names) Swap(i, j int)      { n[i], n[j] = n[j], n[i] }
func (n *names) Push(x any)        { *n = append(*n, x.(string)) }
func (n *names) Pop() any {
	last := (*n)[len(*n)-1]
	*n = (*n)[:len(*n)-1]
	return last
}

// add adds a name unless there are limit names before it.
func (n *names) add(name string, limit int) {
	switch {
	case limit <= 0:
		*n = append(*n, name)
	case len(*n) < limit:
		heap.Push(n, name)
	case name < (*n)[0]:
		(*n)[0] = name
		heap.Fix(n, 0)
	}
}
