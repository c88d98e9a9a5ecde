package tui

import (
	"context"
	"time"

	tea "github.com/charmbracelet/bubbletea"
)

// actionTimeout bounds an action of the cluster's.
const actionTimeout = 30 * time.Second

// dialog asks whether to do something. No is preset.
type dialog struct {
	question string
	detail   string
	doing    string // what is under way, once it is confirmed
	done     string
	yes      bool // chosen, but not confirmed
	act      func(context.Context) error
}

// confirm asks before an action, unless none is allowed.
func (m *Model) confirm(d *dialog) {
	if m.o.ReadOnly {
		m.flash, m.bad = d.doing+": refused: the console is read-only", true
		return
	}
	m.ask = d
}

// key takes a key while the dialog is open.
func (d *dialog) key(m *Model, k string) tea.Cmd {
	switch k {
	case "left", "right", "tab", "shift+tab", "h", "l":
		d.yes = !d.yes
	case "y", "Y":
		return d.start(m)
	case "enter":
		if d.yes {
			return d.start(m)
		}
		m.ask = nil
	case "n", "N", "esc", "q":
		m.ask = nil
	}
	return nil
}

// start does what was asked about.
func (d *dialog) start(m *Model) tea.Cmd {
	m.ask = nil
	m.flash, m.bad = d.doing+" ...", false
	return guarded(func() tea.Msg {
		ctx, cancel := context.WithTimeout(m.ctx, actionTimeout)
		defer cancel()
		if err := d.act(ctx); err != nil {
			return doneMsg{d.doing, err}
		}
		return doneMsg{what: d.done}
	})
}

// view draws the dialog.
func (d *dialog) view(m *Model, w, h int) []string {
	no, yes := "[ No ]", "  Yes  "
	if d.yes {
		no, yes = "  No  ", "[ Yes ]"
	}
	lines := make([]string, max((h-6)/3, 0))
	for _, text := range wrap(m.theme.clean(d.question), w-4) {
		lines = append(lines, "  "+m.theme.paint(strong, text))
	}
	for _, text := range wrap(m.theme.clean(d.detail), w-4) {
		lines = append(lines, "  "+text)
	}
	if d.yes {
		yes = m.theme.paint(chosen, yes)
	} else {
		no = m.theme.paint(chosen, no)
	}
	return append(lines, "", "  "+no+"  "+yes)
}

// wrap breaks a clean text into lines of at most w columns.
func wrap(s string, w int) []string {
	var lines []string
	for s != "" {
		line := cut(s, w, "")
		if len(line) < len(s) {
			for i := len(line); i > len(line)/2; i-- {
				if s[i] == ' ' {
					line = s[:i]
					break
				}
			}
		}
		lines = append(lines, line)
		s = s[len(line):]
		for s != "" && s[0] == ' ' {
			s = s[1:]
		}
	}
	return lines
}
