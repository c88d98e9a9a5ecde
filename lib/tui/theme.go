package tui

import (
	"io"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"
)

// glyphs are the characters that are not letters. Each takes one column, but
// for the arrow.
type glyphs struct {
	heat    []string // from idle to above the threshold
	bars    []string // of a sparkline, from nothing to the most
	edge    string   // where a segment begins in the ring
	cursor  string   // the selected row
	point   string   // below the selected segment
	more    string   // a text was cut here
	line    string
	rising  string // sorted by this column
	falling string
	arrow   string
	dot     string // between facts
	join    string // to the facts of one thing in two rows
}

var unicodeGlyphs = glyphs{
	heat:   []string{"·", "░", "▒", "▓", "█", "!"},
	bars:   []string{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"},
	edge:   "│",
	cursor: "▸", point: "▲", more: "…", line: "─", rising: "▲", falling: "▼", arrow: "→", dot: "·", join: "└",
}

var asciiGlyphs = glyphs{
	heat:   []string{".", "-", "+", "*", "#", "!"},
	bars:   []string{" ", "_", ".", ":", "-", "=", "+", "*", "#"},
	edge:   "|",
	cursor: ">", point: "^", more: "~", line: "-", rising: "^", falling: "v", arrow: "->", dot: "-", join: "`",
}

// role is what a part of the screen is, which decides its colour. No role is
// told by its colour alone.
type role int

const (
	normal role = iota
	faint
	strong
	head
	chosen // the selected row
	good
	warning
	alarm
	heat1 // and so on to heat5
	heat2
	heat3
	heat4
	heat5
)

// theme draws texts in their roles.
type theme struct {
	glyphs
	plain  bool // ASCII only
	styles map[role]lipgloss.Style
}

// newTheme makes a theme. Its colours are the terminal's own sixteen, so that
// they suit its background.
func newTheme(ascii, noColor bool) *theme {
	t := &theme{glyphs: unicodeGlyphs, plain: ascii}
	if ascii {
		t.glyphs = asciiGlyphs
	}
	if noColor {
		return t
	}
	r := lipgloss.NewRenderer(io.Discard)
	r.SetColorProfile(termenv.ANSI)
	colour := func(c string) lipgloss.Style { return r.NewStyle().Inline(true).Foreground(lipgloss.Color(c)) }
	t.styles = map[role]lipgloss.Style{
		faint:   r.NewStyle().Inline(true).Faint(true),
		strong:  r.NewStyle().Inline(true).Bold(true),
		head:    colour("6").Bold(true),
		chosen:  r.NewStyle().Inline(true).Reverse(true),
		good:    colour("2"),
		warning: colour("3"),
		alarm:   colour("1").Bold(true),
		heat1:   colour("4"),
		heat2:   colour("6"),
		heat3:   colour("2"),
		heat4:   colour("3"),
		heat5:   colour("1").Bold(true),
	}
	return t
}

// paint draws a clean text.
func (t *theme) paint(r role, s string) string {
	style, ok := t.styles[r]
	if !ok || s == "" {
		return s
	}
	return style.Render(s)
}

// clean is clean as this theme needs it.
func (t *theme) clean(s string) string { return clean(s, t.plain) }

// fit is fit with this theme's mark.
func (t *theme) fit(s string, w int, right bool) string { return fit(s, w, right, t.more) }

// cut is cut with this theme's mark.
func (t *theme) cut(s string, w int) string { return cut(s, w, t.more) }

// address makes a clean address exactly w columns wide.
func (t *theme) address(s string, w int) string {
	return t.fit(shortAddress(s, w, t.more), w, false)
}

// heatOf is how hot a load is that is this part of the threshold for a split:
// 0 idle, 5 above it.
func heatOf(part float64) int {
	switch {
	case part < 0.001:
		return 0
	case part < 0.25:
		return 1
	case part < 0.5:
		return 2
	case part < 0.75:
		return 3
	case part < 1:
		return 4
	}
	return 5
}

// heatRole is the colour of a heat.
func heatRole(heat int) role {
	if heat == 0 {
		return faint
	}
	return heat1 + role(heat-1)
}

// bar is the character of a sparkline for a value from 0 to 1.
func (t *theme) bar(v float64) string {
	switch {
	case v <= 0:
		return t.bars[0]
	case v >= 1:
		return t.bars[len(t.bars)-1]
	}
	return t.bars[1+int(v*float64(len(t.bars)-1))]
}
