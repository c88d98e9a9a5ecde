package wire

import (
	"testing"
	"time"
)

func TestRulesAddUp(t *testing.T) {
	rules := []*Rule{
		{From: Parts{"a"}, To: Parts{"b"}, Cut: true},
		{From: Parts{"b"}, To: Parts{"c"}, Both: true, Delay: time.Second, Rate: 10},
		{From: Parts{"c"}, Delay: time.Second, Rate: 5},
	}
	for _, c := range []struct {
		from, to string
		want     effect
	}{
		{"a", "b", effect{cut: true}},
		{"b", "a", effect{}},
		{"b", "c", effect{delay: time.Second, rate: 10}},
		{"c", "b", effect{delay: 2 * time.Second, rate: 5}},
		{"c", "a", effect{delay: time.Second, rate: 5}},
		{"", "b", effect{}},
		{"c", "c", effect{}},
	} {
		if got := combine(rules, c.from, c.to); got != c.want {
			t.Errorf("from %q to %q: %+v, want %+v", c.from, c.to, got, c.want)
		}
	}
}

func TestRulesForAllHoldForTheUnknown(t *testing.T) {
	rules := []*Rule{{To: Parts{"b"}, Cut: true}}
	if got := combine(rules, "", "b"); !got.cut {
		t.Error("a rule for all lets the unknown pass")
	}
}
