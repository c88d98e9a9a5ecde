package dir

import (
	"container/list"
	"io/fs"
	"os"
	"sync"
)

// maxOpenFiles is how many files a store keeps open to read them again.
const maxOpenFiles = 64

// files keeps open what was read last. A file is used only after a look at its
// path has shown that it is still the one there: as long as it is open, nothing
// else can have its identity.
type files struct {
	max int

	mu    sync.Mutex
	open  map[string]*openFile
	order list.List // of *openFile, the last used in front
}

type openFile struct {
	path string
	file *os.File
	info fs.FileInfo

	// Guarded by files.mu.
	users int           // calls that are reading it
	kept  *list.Element // its place in the order; nil once it is let go
	used  bool          // since closeUnused looked
}

func newFiles(max int) *files {
	return &files{max: max, open: map[string]*openFile{}}
}

// get returns the file for a call to read, if it is open and is the one that
// was found at the path. release must follow.
func (c *files) get(path string, now fs.FileInfo) *openFile {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.open[path]
	if f == nil {
		return nil
	}
	if !os.SameFile(f.info, now) {
		c.letGo(f)
		return nil
	}
	c.take(f)
	return f
}

// add keeps a file that has just been opened, and returns it as get does.
func (c *files) add(path string, file *os.File, info fs.FileInfo) *openFile {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.open[path]; f != nil {
		c.letGo(f) // another call was as fast, or has opened what was there before
	}
	f := &openFile{path: path, file: file, info: info}
	f.kept = c.order.PushFront(f)
	c.open[path] = f
	c.take(f)
	for c.order.Len() > c.max {
		c.letGo(c.order.Back().Value.(*openFile))
	}
	return f
}

func (c *files) take(f *openFile) {
	f.users++
	f.used = true
	c.order.MoveToFront(f.kept)
}

// release ends a call's use of a file.
func (c *files) release(f *openFile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.users--
	c.closeIfFree(f)
}

// letGo forgets a file. Who reads it goes on; the last one closes it.
func (c *files) letGo(f *openFile) {
	c.order.Remove(f.kept)
	f.kept = nil
	delete(c.open, f.path)
	c.closeIfFree(f)
}

func (c *files) closeIfFree(f *openFile) {
	if f.kept == nil && f.users == 0 {
		f.file.Close()
	}
}

// closeUnused lets go of what was not read since the last time, so that no
// removed file keeps its space for long.
func (c *files) closeUnused() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.open {
		if !f.used {
			c.letGo(f)
		}
		f.used = false
	}
}

// closeAll lets go of all files and keeps none from now on.
func (c *files) closeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.max = 0
	for _, f := range c.open {
		c.letGo(f)
	}
}
