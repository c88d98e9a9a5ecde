package seglog

import "time"

// When failures at the store count: they must have gone on for a while, and an
// old one says nothing of the store now.
const (
	troubleAfter = 2 * time.Second
	troubleFor   = time.Minute
)

// trouble is what a log knows of a store that fails. The log's lock guards it.
type trouble struct {
	err   error     // the last one; nil: the store took the last chunk
	since time.Time // of the first one in a row
	last  time.Time // of the last one
}

// failing takes note of a failed attempt to bring a chunk into the store.
func (l *Log) failing(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trouble.last = time.Now()
	if l.trouble.err == nil {
		l.trouble.since = l.trouble.last
	}
	l.trouble.err = err
}

// now is what is wrong with the store now, as far as is known.
func (t trouble) now() error {
	if t.err == nil || time.Since(t.since) < troubleAfter || time.Since(t.last) > troubleFor {
		return nil
	}
	return t.err
}
