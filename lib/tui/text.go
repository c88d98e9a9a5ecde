package tui

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/mattn/go-runewidth"
)

// widths measures runes as terminals do that are not set to an East Asian
// legacy, whatever this process's locale says.
var widths = &runewidth.Condition{EastAsianWidth: false, StrictEmojiNeutral: true}

// clean makes a text from outside fit for a line of the screen: each of its
// runes then takes one or two columns wherever it stands, and none drives the
// terminal or the direction of writing. plain leaves ASCII only.
func clean(s string, plain bool) string {
	if isPlain(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == utf8.RuneError || r < ' ':
			return '?'
		case r < 0x7f:
			return r
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Zl, unicode.Zp) || isModifier(r):
			return -1
		case plain || widths.RuneWidth(r) < 1 || !unicode.IsGraphic(r):
			return '?'
		}
		return r
	}, s)
}

// isModifier reports whether a rune joins the one before it to one picture, or
// pairs with one of its kind, where a terminal knows how to.
func isModifier(r rune) bool {
	return r >= 0x1f3fb && r <= 0x1f3ff || r >= 0x1f1e6 && r <= 0x1f1ff || r >= 0x1160 && r <= 0x11ff || r >= 0xd7b0 && r <= 0xd7ff
}

// isPlain reports whether s is printable ASCII.
func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// width is how many columns a clean text takes.
func width(s string) int {
	if isPlain(s) {
		return len(s)
	}
	n := 0
	for _, r := range s {
		n += widths.RuneWidth(r)
	}
	return n
}

// cut shortens a clean text to at most w columns, the last of which then is
// the mark that says so.
func cut(s string, w int, mark string) string {
	if width(s) <= w {
		return s
	}
	if w < 1 {
		return ""
	}
	n := 0
	for i, r := range s {
		if n += widths.RuneWidth(r); n > w-1 {
			return s[:i] + mark
		}
	}
	return s
}

// fit makes a clean text exactly w columns wide.
func fit(s string, w int, right bool, mark string) string {
	s = cut(s, w, mark)
	space := strings.Repeat(" ", max(w-width(s), 0))
	if right {
		return space + s
	}
	return s + space
}

// shortAddress shortens a clean HOST:PORT to at most w columns. Its port stays, which
// alone tells the processes of a machine apart, and of its host the beginning, as far as
// there is room. Where the port has none either, nothing is left.
func shortAddress(s string, w int, mark string) string {
	address, _, _ := strings.Cut(s, " ") // what may follow is a note on it
	at := strings.LastIndexByte(address, ':')
	if at < 0 || width(address) <= w {
		return cut(s, w, mark)
	}
	host, port := address[:at], address[at:]
	switch room := w - width(port) - 1; {
	case room > 0:
		return cut(host, room+1, mark) + port
	case width(port) <= w:
		return port
	}
	return ""
}

// joined joins facts, as many of the first of them as have room in w columns, but one
// at the least.
func joined(facts []string, between string, w int) string {
	text := ""
	for i, fact := range facts {
		longer := text + between + fact
		if i == 0 {
			longer = fact
		} else if width(longer) > w {
			break
		}
		text = longer
	}
	return text
}

// padded is a painted line with spaces up to w columns, cut to them if it is
// longer.
func padded(line string, w int) string {
	n := ansi.StringWidth(line)
	if n > w {
		return ansi.Truncate(line, w, "")
	}
	return line + strings.Repeat(" ", w-n)
}
