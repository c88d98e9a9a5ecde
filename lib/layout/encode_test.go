package layout_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/seaweedmq/smq/lib/layout"
)

// What a version tells people about a change survives in both forms.
func TestAVersionTellsWhy(t *testing.T) {
	before := assigned(t)
	c := layout.Replace(layout.Failover, []layout.Sealed{sealOf(before.Segments[0])}, []layout.Member{bob})
	c.Reason, c.PauseMS = "alice is dead", 123
	l := must(t)(before.Next(c, layout.Stamp{Leader: "00000000000000aa", Term: 3, NowMS: 5}))
	for form, back := range map[string]layout.Layout{
		"stored": must(t)(layout.Decode(layout.Encode(l))),
		"wire":   must(t)(layout.FromProto(layout.ToProto(l))),
	} {
		if back.Reason != "alice is dead" || back.PauseMS != 123 || !reflect.DeepEqual(back, l) {
			t.Errorf("%s: got %+v, want %+v", form, back, l)
		}
	}
}

// Versions that were stored before there were reasons are read as before.
func TestAVersionWithoutReason(t *testing.T) {
	l := assigned(t)
	stored := string(layout.Encode(l))
	for _, field := range []string{"reason", "pause_ms", "loads"} {
		if strings.Contains(stored, field) {
			t.Errorf("%s is stored though there is none: %s", field, stored)
		}
	}
	if back := must(t)(layout.Decode([]byte(stored))); !reflect.DeepEqual(back, l) {
		t.Errorf("got %+v, want %+v", back, l)
	}
}
