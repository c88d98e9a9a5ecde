package tui

import (
	"unicode/utf8"

	tea "github.com/charmbracelet/bubbletea"
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
		m.help = false
		if k == "q" {
			return tea.Quit
		}
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
		m.help = true
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

// helpView draws the help.
func (m *Model) helpView(w, h int) []string {
	lines := append([]string(nil), helpText...)
	g := m.theme.glyphs
	lines = append(lines, "heat of a segment, as a part of the load above which it is split:",
		"  "+g.heat[0]+" idle  "+g.heat[1]+" below 25%  "+g.heat[2]+" 50%  "+g.heat[3]+" 75%  "+g.heat[4]+" 100%  "+g.heat[5]+" above  ? not known yet")
	for i := range lines {
		lines[i] = m.theme.cut(lines[i], w)
	}
	return lines
}
