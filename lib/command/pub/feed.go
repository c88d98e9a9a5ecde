package pub

import (
	"errors"
	"io"
	"sync/atomic"
)

// errStopped ends an input whose reading was stopped.
var errStopped = errors.New("reading was stopped")

// Reading ahead: enough blocks that the reader and the parser rarely wait for
// each other.
const (
	feedBlocks    = 4
	feedBlockSize = 256 << 10
)

// feed reads an input ahead in a goroutine of its own, so that reading and
// parsing overlap and nobody waits for input longer than he wants to.
type feed struct {
	blocks chan block
	free   chan []byte
	stop   <-chan struct{}
	read   *atomic.Int64

	current []byte // what is left of the last block
	last    []byte // the last block, whole, to be given back
	err     error  // that came with it
}

type block struct {
	bytes []byte
	err   error
}

// newFeed reads r until it ends or stop is closed; what was read before is
// still handed out then, since nobody else will get it. Bytes that were read
// are added to read.
//
// A goroutine may stay behind in r.Read after stop, until r is closed or the
// process ends.
func newFeed(r io.Reader, stop <-chan struct{}, read *atomic.Int64) *feed {
	f := &feed{blocks: make(chan block, feedBlocks), free: make(chan []byte, feedBlocks), stop: stop, read: read}
	for range feedBlocks {
		f.free <- nil // made when first needed
	}
	go f.fill(r)
	return f
}

func (f *feed) fill(r io.Reader) {
	for !closed(f.stop) {
		select {
		case buffer := <-f.free:
			if buffer == nil {
				buffer = make([]byte, feedBlockSize)
			}
			n, err := r.Read(buffer)
			f.blocks <- block{buffer[:n], err} // has room: there are as many places as blocks
			f.read.Add(int64(n))
			if err != nil {
				return
			}
		case <-f.stop:
			return
		}
	}
}

// Read hands out what was read, then waits for more unless stopped.
func (f *feed) Read(p []byte) (int, error) {
	for len(f.current) == 0 {
		if f.err != nil {
			return 0, f.err
		}
		if err := f.nextBlock(); err != nil {
			return 0, err
		}
	}
	n := copy(p, f.current)
	f.current = f.current[n:]
	return n, nil
}

func (f *feed) nextBlock() error {
	if f.last != nil {
		f.free <- f.last[:cap(f.last)]
		f.last = nil
	}
	select {
	case b := <-f.blocks:
		f.take(b)
		return nil
	default:
	}
	select {
	case b := <-f.blocks:
		f.take(b)
		return nil
	case <-f.stop:
		return errStopped
	}
}

// late is how many bytes were read after the feed had been read to its end for the
// last time: the goroutine that reads may have been waiting for input when it was
// stopped. They are not handed out any more.
func (f *feed) late() int {
	n := 0
	for {
		select {
		case b := <-f.blocks:
			n += len(b.bytes)
		default:
			return n
		}
	}
}

func (f *feed) take(b block) { f.current, f.last, f.err = b.bytes, b.bytes, b.err }

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
