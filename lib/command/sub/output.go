package sub

import (
	"io"
	"sync"
	"time"
)

// Writing to standard output: in pieces of a size that pipes move well, and
// whatever there is once nothing more has come for a moment.
const (
	outputBuffer = 256 << 10
	idleFlush    = 2 * time.Millisecond
)

// output gathers what several followers render. After an error it takes
// nothing more.
type output struct {
	to    io.Writer
	fail  func(error) // told of the first error
	timer *time.Timer

	mu    sync.Mutex
	bytes []byte
	armed bool
	err   error
}

// newOutput writes to w; fail is called once, when that fails.
func newOutput(w io.Writer, fail func(error)) *output {
	o := &output{to: w, fail: fail, bytes: make([]byte, 0, 2*outputBuffer)}
	o.timer = time.AfterFunc(time.Hour, o.tick)
	o.timer.Stop()
	return o
}

// render lets f append to the buffer; f returns the buffer.
func (o *output) render(f func(dst []byte) []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return
	}
	o.bytes = f(o.bytes)
	if len(o.bytes) >= outputBuffer {
		o.flush()
	} else if len(o.bytes) > 0 && !o.armed {
		o.armed = true
		o.timer.Reset(idleFlush)
	}
}

// full reports whether a renderer had better return.
func full(dst []byte) bool { return len(dst) >= outputBuffer }

// Flush writes what there is, and returns the first error ever.
func (o *output) Flush() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flush()
	return o.err
}

// broken reports whether nothing more can be written.
func (o *output) broken() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err != nil
}

func (o *output) tick() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.armed = false
	o.flush()
}

// flush writes the buffer. A message of the largest size does not keep its
// memory for ever.
func (o *output) flush() {
	if len(o.bytes) == 0 || o.err != nil {
		return
	}
	if _, err := o.to.Write(o.bytes); err != nil {
		o.err = err
		o.fail(err)
	}
	if cap(o.bytes) > 8*outputBuffer {
		o.bytes = make([]byte, 0, 2*outputBuffer)
	}
	o.bytes = o.bytes[:0]
}
