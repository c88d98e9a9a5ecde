package node

import "testing"

func TestMemoryLimit(t *testing.T) {
	unset := func(string) string { return "" }
	if limit, ok := memoryLimit(unset, 256<<20); limit != 384<<20 || !ok {
		t.Errorf("for 256 MiB: %d, %t", limit, ok)
	}
	set := func(name string) string { return map[string]string{"GOMEMLIMIT": "1GiB"}[name] }
	if _, ok := memoryLimit(set, 256<<20); ok {
		t.Error("GOMEMLIMIT is overridden")
	}
}
