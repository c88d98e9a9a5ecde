package torture

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/torture/wire"
)

// fiveDaemons is a cluster of daemons that do not run.
func fiveDaemons() *cluster {
	c := &cluster{store: &storage{}, clients: []string{"publisher-1"}}
	c.masters = []*daemon{{name: "master-1"}, {name: "master-2"}}
	c.brokers = []*daemon{{name: "broker-1"}, {name: "broker-2"}, {name: "broker-3"}}
	return c
}

func TestRules(t *testing.T) {
	c := fiveDaemons()
	in := &injector{cluster: c}
	it := wire.Parts{"broker-1"}
	for _, test := range []struct {
		deed  deed
		scope scope
		want  wire.Rule
	}{
		{cutBoth, fromAll, wire.Rule{From: it, Both: true, Cut: true}},
		{cutBoth, fromMasters, wire.Rule{From: it, To: wire.Parts{"master-1", "master-2"}, Both: true, Cut: true}},
		{cutBoth, fromBrokers, wire.Rule{From: it, To: wire.Parts{"broker-1", "broker-2", "broker-3"}, Both: true, Cut: true}},
		{cutBoth, fromClients, wire.Rule{From: it, To: wire.Parts{"publisher-1"}, Both: true, Cut: true}},
		{cutBoth, fromStore, wire.Rule{From: it, To: wire.Parts{"store"}, Both: true, Cut: true}},
		{cutIn, fromAll, wire.Rule{To: it, Cut: true}},
		{cutOut, fromMasters, wire.Rule{From: it, To: wire.Parts{"master-1", "master-2"}, Cut: true}},
		{breakUp, fromAll, wire.Rule{From: it, Reset: true}},
		{slowDown, fromAll, wire.Rule{From: it, Both: true, Delay: time.Second, Rate: 100}},
	} {
		s := step{action: action{deed: test.deed, scope: test.scope, role: anyBroker}, delay: time.Second, rate: 100}
		if got := in.rule(s, c.brokers[:1]); !reflect.DeepEqual(got, test.want) {
			t.Errorf("deed %d, scope %d: %+v, want %+v", test.deed, test.scope, got, test.want)
		}
	}
	s := step{action: action{deed: cutOut, role: theStore}}
	if got, want := in.rule(s, nil), (wire.Rule{From: wire.Parts{"store"}, Cut: true}); !reflect.DeepEqual(got, want) {
		t.Errorf("the store: %+v, want %+v", got, want)
	}
}

func TestNoClientsAreNotAll(t *testing.T) {
	c := fiveDaemons()
	c.clients = nil
	if got := c.clientParts(); got == nil {
		t.Error("a rule for no clients would hold for all parts")
	}
}

func TestWhoIsHitByTheNetwork(t *testing.T) {
	c := fiveDaemons()
	in := &injector{cluster: c}
	for _, test := range []struct {
		role role
		pick uint64
		want []string
	}{
		{anyBroker, 0, []string{"broker-1"}},
		{anyBroker, 5, []string{"broker-3"}},
		{anyMaster, 3, []string{"master-2"}},
		{allMasters, 3, []string{"master-1", "master-2"}},
		{allBrokers, 1, []string{"broker-1", "broker-2", "broker-3"}},
		{theStore, 1, nil},
	} {
		hit, release := in.choose(t.Context(), step{action: action{deed: cutBoth, role: test.role}, pick: test.pick})
		release()
		if got := names(hit); !slices.Equal(got, test.want) {
			t.Errorf("role %d, pick %d: %v, want %v", test.role, test.pick, got, test.want)
		}
	}
}

func TestTheOneWhoPlaysTheRoleComesFirst(t *testing.T) {
	c := fiveDaemons()
	in := &injector{cluster: c}
	for pick, want := range [][]string{{"broker-3", "broker-1", "broker-2"}, {"broker-3", "broker-2", "broker-1"}, {"broker-3", "broker-1", "broker-2"}} {
		if got := names(in.shuffled(step{pick: uint64(pick)}, c.brokers, c.brokers[2])); !slices.Equal(got, want) {
			t.Errorf("pick %d: %v, want %v", pick, got, want)
		}
	}
	if got := names(in.shuffled(step{pick: 1}, c.brokers, nil)); got[0] != "broker-2" {
		t.Errorf("nobody known: %v", got)
	}
}

func TestFaultsThatHitNobodyDoNothing(t *testing.T) {
	in := &injector{cluster: fiveDaemons(), begun: func(s step, _ []*daemon) func() {
		t.Errorf("%s began", s.name)
		return func() {}
	}}
	for _, d := range []deed{crash, freeze, drain, starve, strand} {
		for _, r := range []role{anyBroker, allBrokers, allProcesses, theStore} {
			in.run(t.Context(), step{action: action{name: "a fault", deed: d, role: r}, lasts: time.Hour})
		}
	}
}
