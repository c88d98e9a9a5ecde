package torture

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
)

// Family is a kind of faults that a user selects.
type Family string

// The families.
const (
	Kill       Family = "kill"      // brokers end as by kill -9, and are started again after a while
	Pause      Family = "pause"     // brokers stand still for up to ten seconds
	Partition  Family = "partition" // the network cuts brokers off, both ways or one way
	Slow       Family = "slow"      // the network is slow
	StoreFault Family = "store"     // the store, or the way to it, fails or is slow
	Master     Family = "master"    // masters are killed, paused and cut off
	Drain      Family = "drain"     // brokers are stopped as an administrator does, and started again
)

// Families are all there are.
func Families() []Family { return []Family{Kill, Pause, Partition, Slow, StoreFault, Master, Drain} }

// ParseFamily reads a family's name. The error is an smq.ErrInvalid.
func ParseFamily(name string) (Family, error) {
	if f := Family(name); slices.Contains(Families(), f) {
		return f, nil
	}
	var names []string
	for _, f := range Families() {
		names = append(names, string(f))
	}
	return "", fmt.Errorf("%w kind of fault %q; there are %s", smq.ErrInvalid, name, strings.Join(names, ", "))
}

// role says which parts a fault hits. Who plays it is found out when the fault
// comes.
type role int

const (
	anyBroker role = iota
	leadingBroker
	owningBroker // of some segment that is published to
	allBrokers
	anyMaster
	leadingMaster
	allMasters
	allProcesses
	theStore
)

// scope says from whom a part is cut off.
type scope int

const (
	fromAll scope = iota
	fromMasters
	fromBrokers
	fromClients
	fromStore
)

// deed is what a fault does to those it hits.
type deed int

const (
	crash   deed = iota // and start again when the fault ends
	freeze              // until the fault ends
	drain               // stop in good order, and start again
	cutBoth             // the network
	cutIn               // nothing reaches it
	cutOut              // nothing leaves it
	breakUp             // connections are reset, and refused
	slowDown
	starve // it cannot open files
	strand // it reaches neither the store nor those of its scope, and then is killed
)

// toProcesses reports whether it is done to processes, not to the network.
func (d deed) toProcesses() bool {
	return d == crash || d == freeze || d == drain || d == starve || d == strand
}

// action is a fault that may come.
type action struct {
	name     string
	family   Family
	deed     deed
	role     role
	scope    scope
	min, max time.Duration // how long it lasts
	needs    needs
}

// needs is what an action is possible with.
type needs int

const (
	nothing      needs = iota
	peers              // several masters
	storeNetwork       // a store that is reached by the network
	storeProcess       // a store that runs as a process of ours
	fileLimits         // a store of files, and a system that limits other processes' files
	storeAccess        // one of the two ways to keep one broker alone from the store
)

const (
	shortest = 100 * time.Millisecond
	longest  = 10 * time.Second
)

// actions are all that there are.
var actions = []action{
	{"kill a broker", Kill, crash, anyBroker, fromAll, shortest, 5 * time.Second, nothing},
	{"kill the leader", Kill, crash, leadingBroker, fromAll, shortest, 5 * time.Second, nothing},
	{"kill an owner", Kill, crash, owningBroker, fromAll, shortest, 5 * time.Second, nothing},
	{"kill an owner with messages that are not stored", Kill, strand, owningBroker, fromStore, shortest, 1500 * time.Millisecond, storeAccess},
	{"kill an owner with messages that nobody else has", Kill, strand, owningBroker, fromBrokers, shortest, 1500 * time.Millisecond, storeAccess},
	{"kill all brokers", Kill, crash, allBrokers, fromAll, shortest, 2 * time.Second, nothing},

	{"pause a broker", Pause, freeze, anyBroker, fromAll, shortest, longest, nothing},
	{"pause the leader", Pause, freeze, leadingBroker, fromAll, shortest, longest, nothing},
	{"pause an owner", Pause, freeze, owningBroker, fromAll, shortest, longest, nothing},

	{"cut off a broker", Partition, cutBoth, anyBroker, fromAll, shortest, longest, nothing},
	{"cut off the leader", Partition, cutBoth, leadingBroker, fromAll, shortest, longest, nothing},
	{"cut an owner off the masters", Partition, cutBoth, owningBroker, fromMasters, shortest, longest, nothing},
	{"cut an owner off the brokers", Partition, cutBoth, owningBroker, fromBrokers, shortest, longest, nothing},
	{"cut an owner off the clients", Partition, cutBoth, owningBroker, fromClients, shortest, longest, nothing},
	{"deafen an owner", Partition, cutIn, owningBroker, fromAll, shortest, longest, nothing},
	{"mute an owner", Partition, cutOut, owningBroker, fromAll, shortest, longest, nothing},
	{"mute a broker to the masters", Partition, cutOut, anyBroker, fromMasters, shortest, longest, nothing},
	{"break a broker's connections", Partition, breakUp, anyBroker, fromAll, shortest, 5 * time.Second, nothing},

	{"slow down a broker", Slow, slowDown, anyBroker, fromAll, time.Second, longest, nothing},
	{"slow down an owner", Slow, slowDown, owningBroker, fromAll, time.Second, longest, nothing},
	{"slow down the masters", Slow, slowDown, allMasters, fromAll, time.Second, longest, nothing},

	{"cut an owner off the store", StoreFault, cutBoth, owningBroker, fromStore, shortest, longest, storeNetwork},
	{"cut all off the store", StoreFault, cutBoth, theStore, fromAll, shortest, longest, storeNetwork},
	{"mute the store", StoreFault, cutOut, theStore, fromAll, shortest, 5 * time.Second, storeNetwork},
	{"break the store's connections", StoreFault, breakUp, theStore, fromAll, shortest, 5 * time.Second, storeNetwork},
	{"slow down the store", StoreFault, slowDown, theStore, fromAll, time.Second, longest, storeNetwork},
	{"pause the store", StoreFault, freeze, theStore, fromAll, shortest, 5 * time.Second, storeProcess},
	{"kill the store", StoreFault, crash, theStore, fromAll, shortest, 2 * time.Second, storeProcess},
	{"deny an owner its files", StoreFault, starve, owningBroker, fromAll, shortest, 5 * time.Second, fileLimits},
	{"deny all brokers their files", StoreFault, starve, allBrokers, fromAll, shortest, 5 * time.Second, fileLimits},

	{"kill a master", Master, crash, anyMaster, fromAll, shortest, 5 * time.Second, nothing},
	{"kill the leading master", Master, crash, leadingMaster, fromAll, shortest, 5 * time.Second, nothing},
	{"kill all masters", Master, crash, allMasters, fromAll, shortest, 2 * time.Second, nothing},
	{"kill everything", Master, crash, allProcesses, fromAll, shortest, 2 * time.Second, nothing},
	{"pause the leading master", Master, freeze, leadingMaster, fromAll, shortest, longest, nothing},
	{"cut off the leading master", Master, cutBoth, leadingMaster, fromAll, shortest, longest, peers},
	{"cut the leading master off the masters", Master, cutBoth, leadingMaster, fromMasters, shortest, longest, peers},
	{"deafen the leading master", Master, cutIn, leadingMaster, fromAll, shortest, longest, peers},
	{"mute the leading master", Master, cutOut, leadingMaster, fromMasters, shortest, longest, peers},

	{"drain a broker", Drain, drain, anyBroker, fromAll, shortest, 2 * time.Second, nothing},
	{"drain the leader", Drain, drain, leadingBroker, fromAll, shortest, 2 * time.Second, nothing},
	{"drain an owner", Drain, drain, owningBroker, fromAll, shortest, 2 * time.Second, nothing},
}

// possible are the actions of some families that have what they need.
func possible(families []Family, have []needs) []action {
	return slices.DeleteFunc(slices.Clone(actions), func(a action) bool {
		return !slices.Contains(families, a.family) || a.needs != nothing && !slices.Contains(have, a.needs)
	})
}

// step is a fault that comes, and how long after the one before.
type step struct {
	action
	wait  time.Duration
	lasts time.Duration
	pick  uint64        // chooses among those who play the role
	delay time.Duration // of a slow network
	rate  int64         // of a slow network, bytes a second
}

// plan is the order in which faults come. It is the same for the same seed and
// the same actions. Every action comes once before any comes again.
type plan struct {
	random  *rand.Rand
	every   time.Duration // on average
	actions []action
	deck    []action // those that are still to come in this round
}

func newPlan(seed uint64, every time.Duration, actions []action) *plan {
	return &plan{random: rand.New(rand.NewPCG(seed, 1)), every: every, actions: actions}
}

// next is the next fault. There must be at least one action.
func (p *plan) next() step {
	if len(p.deck) == 0 {
		p.deck = slices.Clone(p.actions)
		p.random.Shuffle(len(p.deck), func(i, j int) { p.deck[i], p.deck[j] = p.deck[j], p.deck[i] })
	}
	a := p.deck[0]
	p.deck = p.deck[1:]
	return step{
		action: a,
		wait:   p.between(0, 2*p.every),
		lasts:  p.between(a.min, a.max),
		pick:   p.random.Uint64(),
		delay:  p.between(10*time.Millisecond, 500*time.Millisecond),
		rate:   50<<10 + p.random.Int64N(1<<20),
	}
}

// between is a duration from lo to hi.
func (p *plan) between(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(p.random.Int64N(int64(hi-lo)+1))
}
