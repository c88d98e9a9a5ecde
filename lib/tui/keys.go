package tui

import (
	"strings"
	"unicode/utf8"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
)

// press takes a message of keys: one key, several that were pressed so fast that
// they came together, or a text that was pasted, which means something only
// where a text is typed.
func (m *Model) press(msg tea.KeyMsg) tea.Cmd {
	if msg.Type != tea.KeyRunes || msg.Paste {
		return m.key(msg) // no key has the name of a pasted text, which is [text]
	}
	var all []tea.Cmd
	for _, r := range msg.Runes {
		all = append(all, m.key(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{r}, Alt: msg.Alt}))
	}
	return tea.Batch(all...)
}

// key takes a key.
func (m *Model) key(msg tea.KeyMsg) tea.Cmd {
	k := msg.String()
	switch {
	case k == "ctrl+c":
		return m.end(ErrInterrupted)
	case k == "ctrl+z":
		return tea.Suspend
	case m.w < minWidth || m.h < minHeight:
		if k == "q" {
			return tea.Quit
		}
		return nil
	case m.typing:
		m.typeFilter(msg)
		return nil
	case m.ask != nil:
		return m.ask.key(m, k)
	case m.help:
		if k == "q" {
			return tea.Quit
		}
		m.help = m.scrollHelp(k)
		return nil
	}
	m.flash = ""
	if cmd, ok := m.screen().key(m, k); ok {
		return cmd
	}
	return m.common(k)
}

// common takes a key that means the same everywhere.
func (m *Model) common(k string) tea.Cmd {
	switch k {
	case "q":
		return tea.Quit
	case "?", "h", "f1":
		m.help, m.helpAt = true, 0
	case "p":
		m.pause()
	case "y":
		return m.copyName()
	case "/":
		if _, ok := m.screen().(filtered); ok {
			m.typing = true
		}
	case "esc", "backspace", "left":
		if f, ok := m.screen().(filtered); ok && *f.filter() != "" {
			*f.filter() = ""
		} else {
			m.back()
		}
	case "tab":
		m.switchTo((m.at + 1) % len(m.tabs))
	case "shift+tab":
		m.switchTo((m.at + len(m.tabs) - 1) % len(m.tabs))
	case "1", "2", "3":
		m.switchTo(int(k[0] - '1'))
	}
	return nil
}

// switchTo shows a tab; the one that is shown goes back to its first screen.
func (m *Model) switchTo(i int) {
	if i == m.at {
		m.tab().stack = m.tab().stack[:1]
	}
	m.at = i
	m.refocus()
}

// pause makes what is shown stand still, or go on. What is told meanwhile is
// not lost.
func (m *Model) pause() {
	if m.frozen != nil {
		m.frozen = nil
		return
	}
	m.frozen = m.live.frozen()
}

// copyName puts the name of what is selected on the clipboard of the terminal.
func (m *Model) copyName() tea.Cmd {
	name := m.screen().name(m)
	if name == "" || m.copy == nil {
		return nil
	}
	return func() tea.Msg {
		return doneMsg{"copied " + name, m.copy(name)}
	}
}

// typeFilter takes a key while a filter is typed.
func (m *Model) typeFilter(msg tea.KeyMsg) {
	text := m.screen().(filtered).filter()
	switch msg.Type {
	case tea.KeyEnter:
		m.typing = false
	case tea.KeyEsc:
		*text, m.typing = "", false
	case tea.KeyBackspace:
		_, n := utf8.DecodeLastRuneInString(*text)
		*text = (*text)[:len(*text)-n]
	case tea.KeyCtrlU:
		*text = ""
	case tea.KeyRunes, tea.KeySpace:
		*text += m.theme.clean(string(msg.Runes))
	}
}

// helpText is the help. What stands before two spaces is a key.
var helpText = []string{
	"1 2 3, tab      topics, brokers, events",
	"up down, j k    move; also pgup, pgdown, home, end",
	"enter           open what is selected: a topic, its segments, an event",
	"esc             back; or clear the filter",
	"/               show only what contains a text",
	"s, r            sort by the next column; the other way round",
	"p               pause what is shown; go on",
	"f               events: follow the newest",
	"y               copy the name of what is selected",
	"S, M            split a segment; merge it with the next one (both ask)",
	"d               drain a broker (asks)",
	"?               this help",
	"q, ctrl+c       quit",
	"",
}

// keyColumn is how wide the keys are in the help.
const keyColumn = 16

// helpLines is the help in lines of at most w columns.
func (m *Model) helpLines(w int) []string {
	var lines []string
	for _, text := range helpText {
		if len(text) <= w || len(text) <= keyColumn {
			lines = append(lines, text)
			continue
		}
		indent := text[:keyColumn]
		for part := range strings.SplitSeq(ansi.Wordwrap(text[keyColumn:], w-keyColumn, ""), "\n") {
			lines = append(lines, indent+part)
			indent = strings.Repeat(" ", keyColumn)
		}
	}
	lines = append(lines, strings.Split(ansi.Wordwrap("heat of a segment, as a part of the load above which it is split:", w, ""), "\n")...)
	return append(lines, m.heats(w)...)
}

// heats explains the colours of segments in lines of at most w columns.
func (m *Model) heats(w int) []string {
	g := m.theme.glyphs
	var lines []string
	line := ""
	for _, item := range []string{
		g.heat[0] + " idle", g.heat[1] + " below 25%", g.heat[2] + " 50%", g.heat[3] + " 75%", g.heat[4] + " 100%", g.heat[5] + " above", "? not known yet",
	} {
		if longer := line + "  " + item; width(longer) > w {
			lines, line = append(lines, line), "  "+item
		} else {
			line = longer
		}
	}
	return append(lines, line)
}

// helpHeight is how many lines there is room for.
func (m *Model) helpHeight() int { return m.h - 3 }

// helpEnd is the first line that is shown when the help's last one is: 0 when all
// have room.
func (m *Model) helpEnd() int { return max(len(m.helpLines(m.w))-m.helpHeight(), 0) }

// scrollHelp takes a key while the help is shown; false: it ends that.
func (m *Model) scrollHelp(k string) bool {
	end := m.helpEnd()
	if end == 0 {
		return false
	}
	at := min(m.helpAt, end) // the screen may have grown
	switch k {
	case "down", "j":
		at++
	case "up", "k":
		at--
	case "pgdown", " ":
		at += m.helpHeight()
	case "pgup":
		at -= m.helpHeight()
	case "home", "g":
		at = 0
	case "end", "G":
		at = end
	default:
		return false
	}
	m.helpAt = min(max(at, 0), end)
	return true
}

// helpHints are the keys that mean something in the help.
func (m *Model) helpHints() string {
	end := m.helpEnd()
	switch {
	case end == 0:
		return "any key goes back"
	case m.helpAt >= end:
		return "up: more above  any other key goes back"
	}
	return "down: more below  any other key goes back"
}

// helpView draws the help, or what there is room for.
func (m *Model) helpView(w int) []string {
	return m.helpLines(w)[min(m.helpAt, m.helpEnd()):]
}
