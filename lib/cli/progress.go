package cli

import (
	"io"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/seaweedmq/smq/lib/smq"
)

// progressDelay is how long work must last before its progress is shown: what
// is done at once needs none.
const progressDelay = 800 * time.Millisecond

// plainInterval is how often progress is printed off a terminal.
const plainInterval = 5 * time.Second

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
// error is a terminal and -q does not forbid it. Elsewhere, when it was asked
// for, it prints a line every few seconds. state is asked again and again, by
// several goroutines. Call Stop when the work is over.
func (e *Env) StartProgress(asked bool, state func() ProgressState) *Progress {
	animated := e.StderrTerminal && !e.Plain()
	if e.Flags.Quiet || !animated && !asked {
		return nil
	}
	p := &Progress{env: e, start: time.Now(), stop: make(chan struct{}), done: make(chan struct{})}
	if !animated {
		go p.runPlain(state)
		return p
	}
	e.atWork.Store(p)
	go p.run(state)
	return p
}

func (p *Progress) runPlain(state func() ProgressState) {
	defer close(p.done)
	ticker := time.NewTicker(plainInterval)
	defer ticker.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-ticker.C:
			s := state()
			p.env.Infof("%v: %s, %s", time.Since(p.start).Round(time.Second), FormatSize(s.Done), s.Text)
		}
	}
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

// amount is so many bytes, and how many that is a second.
func amount(done int64, elapsed time.Duration) string {
	return FormatSize(done) + "  " + smq.ByteRate(float64(done)/max(elapsed, time.Millisecond).Seconds())
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
			decor.Any(func(decor.Statistics) string { return "  " + amount(state().Done, time.Since(p.start)) }),
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
