package torture

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/torture/check"
)

// everything is what all actions need.
var everything = []needs{peers, storeNetwork, storeProcess, fileLimits, storeAccess}

func TestAPlanIsTheSameForTheSameSeed(t *testing.T) {
	all := possible(Families(), everything)
	a, b, other := newPlan(7, time.Second, all), newPlan(7, time.Second, all), newPlan(8, time.Second, all)
	same := true
	for range 100 {
		one := a.next()
		if two := b.next(); one != two {
			t.Fatalf("%+v and %+v", one, two)
		}
		same = same && one == other.next()
	}
	if same {
		t.Error("another seed gives the same plan")
	}
}

func TestEveryActionComesOnceARound(t *testing.T) {
	all := possible(Families(), everything)
	if len(all) != len(actions) {
		t.Fatalf("%d of %d actions are possible", len(all), len(actions))
	}
	p := newPlan(1, time.Second, all)
	for range 3 {
		came := make(map[string]bool)
		for range all {
			s := p.next()
			came[s.name] = true
			if s.lasts < s.min || s.lasts > s.max || s.lasts > longest || s.wait < 0 || s.wait > 2*time.Second {
				t.Errorf("%+v", s)
			}
		}
		if len(came) != len(all) {
			t.Errorf("%d of %d actions came in a round", len(came), len(all))
		}
	}
}

func TestPossibleActions(t *testing.T) {
	for _, f := range Families() {
		some := possible([]Family{f}, everything)
		if len(some) == 0 || slices.ContainsFunc(some, func(a action) bool { return a.family != f }) {
			t.Errorf("%s: %v", f, some)
		}
	}
	for _, a := range possible(Families(), nil) {
		if a.needs != nothing {
			t.Errorf("%q is possible without what it needs", a.name)
		}
	}
}

func TestParseFamily(t *testing.T) {
	for _, f := range Families() {
		if got, err := ParseFamily(string(f)); got != f || err != nil {
			t.Errorf("%s: %s, %v", f, got, err)
		}
	}
	if _, err := ParseFamily("flood"); !errors.Is(err, smq.ErrInvalid) {
		t.Errorf("flood: %v", err)
	}
}

func TestMessages(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	m, key := check.Message{Publisher: 3, Number: 1 << 20}, []byte("key")
	for _, size := range []int{minimumSize, 100, 70000} {
		value := encodeMessage(random, m, key, size)
		if got, err := decodeMessage(value, key); got != m || err != nil || len(value) != size {
			t.Errorf("size %d: %v of %d bytes, %v", size, got, len(value), err)
		}
		if _, err := decodeMessage(value, []byte("kex")); !errors.Is(err, errChecksum) {
			t.Errorf("with another key: %v", err)
		}
		for _, at := range []int{len(word), len(value) / 2, len(value) - 1} {
			damaged := slices.Clone(value)
			damaged[at] ^= 1
			if _, err := decodeMessage(damaged, key); !errors.Is(err, errChecksum) {
				t.Errorf("with byte %d damaged: %v", at, err)
			}
		}
	}
	for _, foreign := range []string{"", "tort", "text that is not one of ours"} {
		if _, err := decodeMessage([]byte(foreign), nil); !errors.Is(err, errForeign) {
			t.Errorf("%q: %v", foreign, err)
		}
	}
}
