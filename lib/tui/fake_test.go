package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/seaweedmq/smq/lib/smqpb"
)

// fake is a backend of which tests see what it was asked to do. Its watches pass
// on what the test sends.
type fake struct {
	mu      sync.Mutex
	asked   []string
	answer  error                 // to actions
	past    []*smqpb.LayoutEvent  // of the topic, in the store; nil: it cannot be had
	watches map[string]*fakeWatch // by topic; "": of the cluster
	opened  chan string
}

// fakeWatch is a watch that the console holds.
type fakeWatch struct {
	req  *smqpb.WatchRequest
	tell chan told // an ended ends the watch
}

func newFake() *fake {
	return &fake{watches: make(map[string]*fakeWatch), opened: make(chan string, 16)}
}

func (f *fake) note(format string, args ...any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, fmt.Sprintf(format, args...))
	return f.answer
}

func (f *fake) Watch(ctx context.Context, req *smqpb.WatchRequest, update func(*smqpb.WatchUpdate), lost func(error)) error {
	w := &fakeWatch{req: req, tell: make(chan told)}
	f.mu.Lock()
	f.watches[req.GetTopic()] = w
	f.mu.Unlock()
	f.opened <- req.GetTopic()
	for {
		select {
		case t := <-w.tell:
			switch {
			case t.update != nil:
				update(t.update)
			case t.lost != nil:
				lost(t.lost)
			default:
				return t.ended
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (f *fake) Changes(_ context.Context, topic string, after uint64) ([]*smqpb.LayoutEvent, error) {
	if f.past == nil {
		return nil, fmt.Errorf("changes of %s after %d: none", topic, after)
	}
	return f.past, nil
}

func (f *fake) SplitSegment(_ context.Context, topic string, segment uint64) error {
	return f.note("split %s/%d", topic, segment)
}

func (f *fake) MergeSegments(_ context.Context, topic string, segments []uint64) error {
	return f.note("merge %s/%v", topic, segments)
}

func (f *fake) DrainBroker(_ context.Context, broker string) error {
	return f.note("drain %s", broker)
}

// console is a model that a test drives: what it asks to be done is done at
// once, by the same goroutine.
type console struct {
	t    *testing.T
	m    *Model
	fake *fake
	// What the model has asked for.
	watched []string
	copied  []string
	quit    bool
}

func newConsole(t *testing.T, w, h int, o Options) *console {
	c := &console{t: t, fake: newFake()}
	o.Backend, o.Zone = c.fake, time.UTC
	c.m = newModel(o)
	c.m.ctx = t.Context()
	c.m.focus = func(topic string) { c.watched = append(c.watched, topic) }
	c.m.copy = func(s string) error { c.copied = append(c.copied, s); return nil }
	c.send(tea.WindowSizeMsg{Width: w, Height: h})
	return c
}

// send gives the model a message and then what comes of it.
func (c *console) send(msg tea.Msg) {
	c.t.Helper()
	_, cmd := c.m.Update(msg)
	c.run(cmd)
}

// run does what the model asks for.
func (c *console) run(cmd tea.Cmd) {
	c.t.Helper()
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case tea.BatchMsg:
		for _, cmd := range msg {
			c.run(cmd)
		}
	case tea.QuitMsg:
		c.quit = true
	case tea.SuspendMsg, nil:
	default:
		c.send(msg)
	}
}

var namedKeys = map[string]tea.KeyType{
	"enter": tea.KeyEnter, "esc": tea.KeyEsc, "tab": tea.KeyTab, "shift+tab": tea.KeyShiftTab, "up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft,
	"right": tea.KeyRight, "home": tea.KeyHome, "end": tea.KeyEnd, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "backspace": tea.KeyBackspace,
	"ctrl+c": tea.KeyCtrlC, "ctrl+u": tea.KeyCtrlU, "ctrl+z": tea.KeyCtrlZ, "space": tea.KeySpace,
}

// press presses keys, which are separated by spaces.
func (c *console) press(keys string) {
	c.t.Helper()
	for k := range strings.FieldsSeq(keys) {
		if special, ok := namedKeys[k]; ok {
			msg := tea.KeyMsg{Type: special}
			if special == tea.KeySpace {
				msg.Runes = []rune{' '}
			}
			c.send(msg)
		} else {
			c.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(k)})
		}
	}
}

// tell passes an update of the cluster on.
func (c *console) tell(updates ...*smqpb.WatchUpdate) {
	c.t.Helper()
	c.send(updatesMsg{updates: updates})
}

// tellTopic passes a topic's detail on.
func (c *console) tellTopic(d *smqpb.TopicDetail) {
	c.t.Helper()
	c.send(updatesMsg{topic: d.GetConfig().GetTopic(), updates: []*smqpb.WatchUpdate{{Detail: d}}})
}

// frame is the screen, checked: as many lines as it has or fewer, none wider,
// and nothing in them but text and colours.
func (c *console) frame() string {
	c.t.Helper()
	frame := c.m.View()
	checkFrame(c.t, frame, c.m.w, c.m.h)
	return frame
}

func checkFrame(t *testing.T, frame string, w, h int) {
	t.Helper()
	lines := strings.Split(frame, "\n")
	if len(lines) > h {
		t.Errorf("%d lines on a screen of %d", len(lines), h)
	}
	for i, line := range lines {
		text := sgr.ReplaceAllString(line, "")
		if n := width(text); n > w {
			t.Errorf("line %d is %d columns wide on a screen of %d: %q", i, n, w, text)
		}
		if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }) {
			t.Errorf("line %d has control characters: %q", i, text)
		}
	}
}

// wants fails the test unless the screen has each of the texts.
func (c *console) wants(texts ...string) {
	c.t.Helper()
	frame := sgr.ReplaceAllString(c.frame(), "")
	for _, text := range texts {
		if !strings.Contains(frame, text) {
			c.t.Errorf("no %q in\n%s", text, frame)
		}
	}
}

// lacks fails the test if the screen has one of the texts.
func (c *console) lacks(texts ...string) {
	c.t.Helper()
	frame := sgr.ReplaceAllString(c.frame(), "")
	for _, text := range texts {
		if strings.Contains(frame, text) {
			c.t.Errorf("%q in\n%s", text, frame)
		}
	}
}

// wantAsked fails the test unless exactly these actions were asked of the
// backend.
func (c *console) wantAsked(want ...string) {
	c.t.Helper()
	if !slices.Equal(c.fake.asked, want) {
		c.t.Errorf("asked %q, want %q", c.fake.asked, want)
	}
}

// selectedLine is the line of the selected row.
func (c *console) selectedLine() string {
	c.t.Helper()
	for line := range strings.SplitSeq(sgr.ReplaceAllString(c.frame(), ""), "\n") {
		if rest, ok := strings.CutPrefix(line, c.m.theme.cursor+" "); ok {
			return strings.TrimSpace(rest)
		}
	}
	c.t.Errorf("nothing is selected in\n%s", c.frame())
	return ""
}
