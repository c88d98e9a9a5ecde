package tui

import (
	"strings"
	"testing"
)

// A text is cut off only where there is no room for it: what is left over goes to
// texts before it goes to drawings.
func TestTextsGetTheRoomThatThereIs(t *testing.T) {
	const owner = "broker-3.smq.internal:7310"
	rows := []string{"10.0.0.1:7310", owner, "10.0.0.2:7310"}
	drawn := 0
	columns := []column{
		{head: "SEG", width: 4, right: true, cell: func(i int) (string, role) { return "7", normal }},
		{head: "OWNER", width: 10, flex: 1, cell: func(i int) (string, role) { return rows[i], normal }},
		{head: "RACK", width: 4, rank: 1, cell: func(i int) (string, role) { return "rack-number-1", normal }},
		{head: "LATELY", width: 8, flex: 1, rank: 2, draw: func(_, w int) string { drawn = w; return strings.Repeat("#", w) }},
	}
	for _, test := range []struct {
		w           int
		owner, rack string
		drawn       int
	}{
		{80, owner, "rack-number-1", 8 + (80-2-6-(4+26+13+8))/2 + 1},
		{59, owner, "rack-number-1", 8},
		{54, owner, "rack-nu~", 8},
		{40, "broker-3.smq.in~", "rac~", 8},
		{30, "broker-3.smq.in~", "rac~", 0},
	} {
		drawn = 0
		table := table{cursor: 1}
		lines := table.view(newTheme(true, true), columns, len(rows), test.w, 5)
		for _, want := range []string{test.owner + " ", test.rack} {
			if !strings.Contains(lines[2]+" ", want) {
				t.Errorf("%d wide: %q should have %q", test.w, lines[2], want)
			}
		}
		if drawn != test.drawn {
			t.Errorf("%d wide: drawn %d wide, want %d", test.w, drawn, test.drawn)
		}
		for _, line := range lines {
			if width(line) > test.w {
				t.Errorf("%d wide: %q is longer", test.w, line)
			}
		}
	}
}

// Columns keep their width when the rows that need it have passed by.
func TestColumnsDoNotJump(t *testing.T) {
	rows := []string{"a", "a text that is long", "b", "c"}
	columns := []column{
		{head: "TEXT", width: 4, cell: func(i int) (string, role) { return rows[i], normal }},
		{head: "NEXT", width: 4, cell: func(int) (string, role) { return "here", normal }},
	}
	th := newTheme(true, true)
	var s table
	before := s.view(th, columns, len(rows), 60, 3)[0]
	s.key("end", len(rows))
	if after := s.view(th, columns, len(rows), 60, 3)[0]; after != before {
		t.Errorf("at the end: %q, at the beginning: %q", after, before)
	}
}
