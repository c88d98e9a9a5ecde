package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
	"github.com/seaweedmq/smq/lib/store/mem"
)

// gate stands between processes and their store. Every call that changes the
// store waits in it until the search decides what becomes of it.
type gate struct {
	st *mem.Store
	// apply creates a file, applyLate one whose caller does not wait any more.
	apply, applyLate func(path string, content []store.Part) error
	stubborn         bool // late creates come also where something is

	mu       sync.Mutex
	waiting  []*step
	late     []*late
	names    names
	digest   uint64            // of the store's content
	uploaded map[string]uint64 // digests of content that was uploaded, by piece
}

// step is a call that waits.
type step struct {
	proc    *process
	verb    string // "create" or "upload"
	path    string
	content []store.Part
	mark    uint64 // digest of the content
	answer  chan answer
}

type answer struct {
	ref store.Ref
	err error
}

func (s *step) label() string {
	return s.proc.name + ": " + s.verb + " " + shortPath(s.path)
}

// shortPath keeps what tells chunks of one topic apart: segment/chunk.
func shortPath(path string) string {
	_, tail, _ := strings.Cut(path, "/segments/")
	var segment, chunk uint64
	if _, err := fmt.Sscanf(tail, "%d/%d.log", &segment, &chunk); err != nil {
		return path
	}
	return fmt.Sprintf("%d/%d", segment, chunk)
}

// late is a create whose caller has been told that its outcome is unknown. It
// may be applied at any time.
type late struct {
	by      string
	path    string
	content []store.Part
	mark    uint64
}

func (l *late) label() string { return "late " + l.by + ": create " + shortPath(l.path) }

// errCut is what a call of a dead process returns, which nobody acts upon.
var errCut = errors.New("the process is dead")

func newGate() *gate {
	g := &gate{st: mem.New(), names: make(names), uploaded: make(map[string]uint64)}
	g.apply = func(path string, content []store.Part) error {
		return g.st.Create(context.Background(), path, content)
	}
	g.applyLate = g.apply
	return g
}

// process is one process with its own handle on the store.
type process struct {
	store.Store // for reads
	gate        *gate
	name        string
	limits      store.Limits

	mu    sync.Mutex
	dead  bool
	trace uint64 // digest of all that the process has been told so far
}

func (g *gate) process(name string, limits store.Limits) *process {
	return &process{Store: g.st.Handle(), gate: g, name: name, limits: limits, trace: mixString(0, name)}
}

// Limits decide what a log uploads before it creates.
func (p *process) Limits() store.Limits { return p.limits }

func (p *process) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// told folds something that the process has learned into its trace.
func (p *process) told(what string, v uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trace = mix(mixString(p.trace, what), v)
}

// Create waits for the search's decision.
func (p *process) Create(ctx context.Context, path string, content []store.Part) error {
	s := &step{proc: p, verb: "create", path: path, content: content, mark: p.gate.digestOf(p.name, path, content), answer: make(chan answer, 1)}
	return p.gate.wait(ctx, s).err
}

// Upload waits likewise.
func (p *process) Upload(ctx context.Context, data ...[]byte) (store.Ref, error) {
	content := store.Bytes(data...)
	s := &step{proc: p, verb: "upload", path: pathOf(content), content: content, mark: p.gate.digestOf(p.name, "", content), answer: make(chan answer, 1)}
	a := p.gate.wait(ctx, s)
	return a.ref, a.err
}

// List, Stat and ReadAt pass, and what they tell is folded into the trace.
func (p *process) List(ctx context.Context, dir, after string, limit int) ([]store.Info, error) {
	if p.isDead() {
		return nil, errCut
	}
	infos, err := p.Store.List(ctx, dir, after, limit)
	h := uint64(len(infos))
	for _, i := range infos {
		h = mix(h, p.gate.markOf(dir+"/"+i.Name))
	}
	p.told("list", h)
	return infos, err
}

// Stat tells of a file.
func (p *process) Stat(ctx context.Context, path string) (store.Info, error) {
	if p.isDead() {
		return store.Info{}, errCut
	}
	p.told("stat", p.gate.markOf(path))
	return p.Store.Stat(ctx, path)
}

// ReadAt tells what is in it.
func (p *process) ReadAt(ctx context.Context, path string, b []byte, off int64) (int, error) {
	if p.isDead() {
		return 0, errCut
	}
	return p.Store.ReadAt(ctx, path, b, off)
}

// wait parks a call. When its context ends first, what it asked for may still
// be done.
func (g *gate) wait(ctx context.Context, s *step) answer {
	if s.proc.isDead() {
		return answer{err: errCut}
	}
	g.mu.Lock()
	g.waiting = append(g.waiting, s)
	g.mu.Unlock()
	select {
	case a := <-s.answer:
		return a
	case <-ctx.Done():
		if g.postpone(s) {
			return answer{err: fmt.Errorf("%w: %w", store.ErrAmbiguous, ctx.Err())}
		}
		return <-s.answer
	}
}

// steps lists what waits, in an order that does not depend on the run.
func (g *gate) steps() []*step {
	g.mu.Lock()
	defer g.mu.Unlock()
	steps := slices.Clone(g.waiting)
	slices.SortStableFunc(steps, func(a, b *step) int { return strings.Compare(a.label(), b.label()) })
	return steps
}

// take removes a step from those that wait, and reports whether it was there.
func (g *gate) take(s *step) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.waiting, s)
	if i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
	}
	return i >= 0
}

// perform applies a step and answers it.
func (g *gate) perform(s *step) {
	g.take(s)
	if s.verb == "upload" {
		ref, err := g.upload(s)
		s.proc.told("upload"+outcome(err), s.mark)
		s.answer <- answer{ref: ref, err: err}
		return
	}
	err := g.create(g.apply, s.path, s.content, s.mark)
	s.proc.told("create "+shortPath(s.path)+outcome(err), 0)
	s.answer <- answer{err: err}
}

// fail answers a step with err and does not apply it.
func (g *gate) fail(s *step, err error) {
	g.take(s)
	s.proc.told(s.verb+outcome(err), 0)
	s.answer <- answer{err: err}
}

// doubt tells a step's caller that its outcome is unknown, and keeps it for
// later.
func (g *gate) doubt(s *step) {
	g.postpone(s)
	s.proc.told(s.verb+outcome(store.ErrAmbiguous), 0)
	s.answer <- answer{err: store.ErrAmbiguous}
}

// postpone moves a step to what may happen late. It reports whether it still
// waited.
func (g *gate) postpone(s *step) bool {
	if !g.take(s) {
		return false
	}
	if s.verb == "create" {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.late = append(g.late, &late{by: s.proc.name, path: s.path, content: copied(s.content), mark: s.mark})
	}
	return true
}

// lates lists what may still happen and would have an effect.
func (g *gate) lates() []*late {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.late = slices.DeleteFunc(g.late, func(l *late) bool { return g.names.taken(l.path) && !g.stubborn })
	return slices.Clone(g.late)
}

func (g *gate) performLate(l *late) {
	g.mu.Lock()
	if i := slices.Index(g.late, l); i >= 0 {
		g.late = slices.Delete(g.late, i, i+1)
	}
	g.mu.Unlock()
	// An error is nobody's to hear.
	_ = g.create(g.applyLate, l.path, l.content, l.mark)
}

// kill cuts a process off: nothing that it calls is done any more, but what
// waited may have been.
func (g *gate) kill(p *process) {
	p.mu.Lock()
	p.dead = true
	p.mu.Unlock()
	for _, s := range g.steps() {
		if s.proc == p {
			g.postpone(s)
			s.answer <- answer{err: errCut}
		}
	}
}

func (g *gate) upload(s *step) (store.Ref, error) {
	ref, err := g.st.Upload(context.Background(), bytesOf(s.content)...)
	if err == nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.uploaded[ref.Pieces[0].ID] = s.mark
	}
	return ref, err
}

func (g *gate) create(apply func(string, []store.Part) error, path string, content []store.Part, mark uint64) error {
	err := apply(path, content)
	if err == nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.digest += g.names.set(path, mark)
	}
	return err
}

func outcome(err error) string {
	switch {
	case err == nil:
		return " ok"
	case errors.Is(err, smq.ErrExists):
		return " exists"
	case errors.Is(err, store.ErrAmbiguous):
		return " unknown"
	case errors.Is(err, smq.ErrNoSpace):
		return " full"
	case errors.Is(err, smq.ErrNotFound):
		return " gone"
	}
	return " error"
}

func bytesOf(content []store.Part) [][]byte {
	b := make([][]byte, len(content))
	for i := range content {
		b[i] = content[i].Bytes
	}
	return b
}

// copied keeps content beyond the call that brought it.
func copied(content []store.Part) []store.Part {
	c := slices.Clone(content)
	for i := range c {
		c[i].Bytes = slices.Clone(c[i].Bytes)
	}
	return c
}
