package tui

import (
	"cmp"
	"slices"
	"strings"
)

// column is a column of a table.
type column struct {
	head  string
	width int // at least; more where there is room and its texts need it
	flex  int // its share of the columns that are left over then; 0: none
	right bool
	// address: its texts are addresses, which are shortened so that they can still be told
	// apart.
	address bool
	rank    int // where there is no room, the columns of the highest rank go first; 0: never
	cell    func(row int) (string, role)
	// draw is for cells that are drawn anew for their width; nil: cell.
	draw func(row, width int) string
	want int // what its texts need; arrange sets it
}

// table is rows, one of which is selected, of which those are drawn that are in
// sight. The rows themselves are somebody else's.
type table struct {
	cursor, offset int
	page           int // rows in sight, when it was drawn last
	// widest is the longest text of each column that has been in sight. It never
	// shrinks, so that columns do not jump about as rows pass by.
	widest []int
}

// key moves the selection; false: the key is none of the table's.
func (t *table) key(k string, rows int) bool {
	switch k {
	case "up", "k":
		t.cursor--
	case "down", "j":
		t.cursor++
	case "pgup", "ctrl+b":
		t.cursor -= max(t.page-1, 1)
	case "pgdown", "ctrl+f", " ":
		t.cursor += max(t.page-1, 1)
	case "home", "g":
		t.cursor = 0
	case "end", "G":
		t.cursor = rows - 1
	default:
		return false
	}
	t.clamp(rows)
	return true
}

// clamp keeps the selection among the rows that there are.
func (t *table) clamp(rows int) {
	t.cursor = max(min(t.cursor, rows-1), 0)
}

// view draws a line of heads and the rows in sight, in w columns and h lines.
func (t *table) view(th *theme, columns []column, rows, w, h int) []string {
	if h < 1 {
		return nil
	}
	t.clamp(rows)
	t.page = max(h-1, 1)
	t.offset = max(min(t.offset, t.cursor, rows-t.page), t.cursor-t.page+1, 0)
	t.measure(th, columns, rows)
	shown := arrange(columns, t.widest, w-2)
	lines := []string{th.paint(head, "  "+t.heads(th, shown))}
	for row := t.offset; row < min(rows, t.offset+h-1); row++ {
		lines = append(lines, t.row(th, shown, row))
	}
	return lines
}

// measure looks how wide the texts in sight are.
func (t *table) measure(th *theme, columns []column, rows int) {
	if len(t.widest) != len(columns) {
		t.widest = make([]int, len(columns))
	}
	for i, c := range columns {
		t.widest[i] = max(t.widest[i], width(c.head))
		if c.draw != nil {
			continue
		}
		for row := t.offset; row < min(rows, t.offset+t.page); row++ {
			text, _ := c.cell(row)
			t.widest[i] = max(t.widest[i], width(th.clean(text)))
		}
	}
}

func (t *table) heads(th *theme, shown []column) string {
	cells := make([]string, len(shown))
	for i, c := range shown {
		cells[i] = th.fit(c.head, c.width, c.right)
	}
	return strings.TrimRight(strings.Join(cells, "  "), " ")
}

func (t *table) row(th *theme, shown []column, row int) string {
	selected := row == t.cursor
	cells := make([]string, len(shown))
	for i, c := range shown {
		if c.draw != nil {
			cells[i] = th.fit(c.draw(row, c.width), c.width, c.right)
			continue
		}
		text, r := c.cell(row)
		if c.address {
			cells[i] = th.address(th.clean(text), c.width)
		} else {
			cells[i] = th.fit(th.clean(text), c.width, c.right)
		}
		if !selected {
			cells[i] = th.paint(r, cells[i])
		}
	}
	line := strings.Join(cells, "  ")
	if selected {
		return th.paint(chosen, th.cursor+" "+line)
	}
	return "  " + line
}

// arrange picks the columns for which there is room, two spaces apart, and sets
// their widths. What is left over goes first to texts that would be cut off, and
// of those first to the columns that would be the last to go.
func arrange(columns []column, widest []int, w int) []column {
	shown := slices.Clone(columns)
	for i := range shown {
		shown[i].want = widest[i]
	}
	for total(shown) > w {
		worst := 0
		for i, c := range shown {
			if c.rank > 0 && c.rank >= shown[worst].rank {
				worst = i
			}
		}
		if shown[worst].rank == 0 {
			break
		}
		shown = append(shown[:worst], shown[worst+1:]...)
	}
	spare := w - total(shown)
	needy := make([]*column, len(shown))
	for i := range shown {
		needy[i] = &shown[i]
	}
	slices.SortStableFunc(needy, func(a, b *column) int { return cmp.Compare(a.rank, b.rank) })
	for _, c := range needy {
		more := max(min(c.want-c.width, spare), 0)
		c.width, spare = c.width+more, spare-more
	}
	shares := 0
	for _, c := range shown {
		shares += c.flex
	}
	for i := range shown {
		c := &shown[i]
		if c.flex == 0 {
			continue
		}
		more := spare * c.flex / shares
		spare, shares = spare-more, shares-c.flex
		c.width = max(c.width+more, 1)
	}
	return shown
}

func total(columns []column) int {
	n := 2 * (len(columns) - 1)
	for _, c := range columns {
		n += c.width
	}
	return n
}
