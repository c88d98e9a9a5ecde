package tui

import (
	"strings"
	"testing"
	"time"
)

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain text": "plain text", "é漢": "é漢", "a\x1b[31m\n": "a?[31m?", "\xffx": "?x", "e\u0301": "e", "a\u202eb": "ab", "👍🏽": "👍", "🇩🇪": "",
	} {
		if got := clean(in, false); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
	if got := clean("é漢\x1b", true); got != "???" {
		t.Errorf("in ASCII: %q", got)
	}
}

func TestFit(t *testing.T) {
	for _, test := range []struct {
		in    string
		w     int
		right bool
		want  string
	}{
		{"abc", 5, false, "abc  "}, {"abc", 5, true, "  abc"}, {"abcdef", 5, false, "abcd~"}, {"abcde", 5, false, "abcde"},
		{"漢字漢", 5, false, "漢字~"}, {"漢字漢", 4, false, "漢~ "}, {"漢字", 1, false, "~"}, {"abc", 0, false, ""}, {"", 2, false, "  "},
	} {
		if got := fit(test.in, test.w, test.right, "~"); got != test.want {
			t.Errorf("fit(%q, %d, %v) = %q, want %q", test.in, test.w, test.right, got, test.want)
		}
	}
}

func TestWrap(t *testing.T) {
	got := strings.Join(wrap("one two three, fourfourfourfour 漢字漢字漢字", 9), "|")
	if want := "one two|three,|fourfour|fourfour|漢字漢字|漢字"; got != want {
		t.Errorf("wrapped %q, want %q", got, want)
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[float64]string{
		-1: "0", 0: "0", 0.04: "0", 0.25: "0.2", 3: "3", 9.7: "9.7", 42.4: "42", 999: "999", 999.6: "1.0k", 12_345: "12.3k", 99_949: "99.9k", 123_456: "123k", 999_600: "1.0M", 4.5e6: "4.5M", 2e18: "2000P",
	} {
		if got := count(n); got != want {
			t.Errorf("count(%v) = %q, want %q", n, got, want)
		}
	}
}

func TestSizes(t *testing.T) {
	for n, want := range map[float64]string{0: "0 B", 950: "950 B", 12_300: "12.3 kB", 20e6: "20 MB"} {
		if got := inBytes(n); got != want {
			t.Errorf("inBytes(%v) = %q, want %q", n, got, want)
		}
	}
	for n, want := range map[uint64]string{512 << 10: "512 KiB", 600 << 20: "600 MiB", 3 << 29: "1.5 GiB"} {
		if got := memory(n); got != want {
			t.Errorf("memory(%v) = %q, want %q", n, got, want)
		}
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-1: "0s", 0: "0s", 850 * time.Millisecond: "850ms", 12 * time.Second: "12s", 5*time.Minute + time.Second: "5m", 47 * time.Hour: "47h", 49 * time.Hour: "2d",
	} {
		if got := span(d); got != want {
			t.Errorf("span(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestHistory(t *testing.T) {
	th := newTheme(true, true)
	var h history
	h.add(0)
	if h.samples != nil {
		t.Error("silence takes memory")
	}
	for _, rate := range []float64{8, 4, 0, 0.001} {
		h.add(rate)
	}
	if got := h.sparkline(th, 6, 0); got != "  #= _" { // what is not nothing shows
		t.Errorf("sparkline %q", got)
	}
	if got := h.sparkline(th, 4, 16); got != "=: _" {
		t.Errorf("sparkline %q", got)
	}
	same := h.copied()
	for range historyLength + 1 {
		h.add(0)
	}
	if h.samples != nil {
		t.Error("a silence that lasts takes memory")
	}
	if got := same.sparkline(th, 2, 0); got != " #" {
		t.Errorf("the copy has changed: %q", got)
	}
}

// Heat is told by characters of their own, not by colour alone.
func TestHeat(t *testing.T) {
	for _, th := range []*theme{newTheme(false, false), newTheme(true, true)} {
		seen := make(map[string]bool)
		for _, part := range []float64{0, 0.1, 0.3, 0.6, 0.9, 1.1} {
			seen[th.heat[heatOf(part)]] = true
		}
		if len(seen) != 6 {
			t.Errorf("six heats have %d characters", len(seen))
		}
	}
}

// What is left of an address tells it from others, or nothing is left.
func TestShortAddress(t *testing.T) {
	for _, test := range []struct {
		address string
		w       int
		want    string
	}{
		{"127.0.0.1:17413", 15, "127.0.0.1:17413"}, {"127.0.0.1:17413", 14, "127.0.0…:17413"}, {"127.0.0.1:17413", 8, "1…:17413"}, {"127.0.0.1:17413", 7, ":17413"},
		{"127.0.0.1:17413", 6, ":17413"}, {"127.0.0.1:17413", 5, ""}, {"127.0.0.1:17413", 0, ""}, {"[::1]:7310", 9, "[::…:7310"},
		{"10.0.0.3:7310 (draining)", 15, "10.0.0.3:7310 …"}, {"10.0.0.3:7310 (draining)", 11, "10.0.…:7310"}, {"unassigned", 6, "unass…"},
	} {
		if got := shortAddress(test.address, test.w, "…"); got != test.want {
			t.Errorf("%s in %d columns: %q, want %q", test.address, test.w, got, test.want)
		}
	}
}

func TestJoinedFacts(t *testing.T) {
	facts := []string{"orders", "8 partitions", "1 segment"}
	for w, want := range map[int]string{80: "orders, 8 partitions, 1 segment", 31: "orders, 8 partitions, 1 segment", 30: "orders, 8 partitions", 19: "orders", 3: "orders"} {
		if got := joined(facts, ", ", w); got != want {
			t.Errorf("in %d columns: %q, want %q", w, got, want)
		}
	}
}

// The first line leaves out what has no room: the least important first.
func TestPickFacts(t *testing.T) {
	facts := []rankedFact{{"smq", 0}, {"c1a5500d", 3}, {"4 brokers", 4}, {"led by a:1", 2}, {"read-only", 1}}
	for w, want := range map[int]string{
		80: "smq - c1a5500d - 4 brokers - led by a:1 - read-only", 50: "smq - c1a5500d - led by a:1 - read-only", 30: "smq - led by a:1 - read-only", 26: "smq - c1a5500d - read-only", 3: "smq",
	} {
		if got := pick(facts, " - ", w, func(s string) string { return s }); got != want {
			t.Errorf("in %d columns: %q, want %q", w, got, want)
		}
	}
}

// A long name of a topic leaves room for what is shown of it.
func TestTitles(t *testing.T) {
	m := &Model{theme: newTheme(false, true), w: 20}
	for topic, want := range map[string]string{"orders": "orders · segment 7", "orders-of-the-last-year": "orders-… · segment 7"} {
		if got := titled(m, topic, "segment 7"); got != want {
			t.Errorf("%s: %q, want %q", topic, got, want)
		}
	}
}
