package cli

import (
	"io"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// progressDelay is how long work must last before its progress is shown: what
// is done at once needs none.
const progressDelay = 800 * time.Millisecond

// Progress is a line on the terminal that tells how far long work has come.
// A nil *Progress shows nothing, so callers need not ask whether it is wanted.
type Progress struct {
	env   *Env
	start time.Time
	stop  chan struct{}
	done  chan struct{}

	mu   sync.Mutex // guards what follows; held while the line appears or goes
	bars *mpb.Progress
	bar  *mpb.Bar
}

// ProgressState is what the line tells: Done of Total (0: unknown) bytes, and
// words about the rest.
type ProgressState struct {
	Done, Total int64
	Text        string
}

// StartProgress shows the progress of work that has begun now, if standard
// error is a terminal and -q does not forbid it. state is asked several times
// a second. Call Stop when the work is over.
func (e *Env) StartProgress(state func() ProgressState) *Progress {
	if !e.StderrTerminal || e.Plain() || e.Flags.Quiet {
		return nil
	}
	p := &Progress{env: e, start: time.Now(), stop: make(chan struct{}), done: make(chan struct{})}
	e.atWork.Store(p)
	go p.run(state)
	return p
}

// Stop removes the line.
func (p *Progress) Stop() {
	if p == nil {
		return
	}
	close(p.stop)
	<-p.done
	p.env.atWork.CompareAndSwap(p, nil)
}

func (p *Progress) run(state func() ProgressState) {
	defer close(p.done)
	select {
	case <-p.stop:
		return
	case <-time.After(progressDelay):
	}
	p.appear(state)
	defer p.vanish()
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		s := state()
		p.bar.SetTotal(max(s.Total, s.Done+1), false) // a full bar would be a finished one
		p.bar.SetCurrent(s.Done)
		select {
		case <-p.stop:
			return
		case <-ticker.C:
		}
	}
}

func (p *Progress) appear(state func() ProgressState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	filler := mpb.NopStyle()
	if state().Total > 0 {
		filler = mpb.BarStyle().Rbound("|").Lbound("|")
	}
	p.bars = mpb.New(mpb.WithOutput(p.env.Stderr), mpb.WithRefreshRate(200*time.Millisecond), mpb.WithWidth(30))
	p.bar = p.bars.New(0, filler,
		mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(
			decor.NewElapsed(decor.ET_STYLE_GO, p.start),
			decor.CurrentKibiByte("  % .1f"),
			decor.NewAverageSpeed(decor.SizeB1024(0), "  % .1f", p.start),
		),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return state().Text })),
	)
}

func (p *Progress) vanish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bar.Abort(true)
	p.bars.Wait()
	p.bars = nil
}

// printAbove prints a line above the progress; false when none is shown.
func (p *Progress) printAbove(text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bars == nil {
		return false
	}
	_, err := io.WriteString(p.bars, text)
	return err == nil
}
