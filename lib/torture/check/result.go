package check

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Violation is a kind of broken promise.
type Violation string

// The violations; the package's documentation says what they mean.
const (
	LostWrite          Violation = "lost write"
	Unseen             Violation = "unseen"
	VanishedRead       Violation = "vanished read"
	InconsistentOffset Violation = "inconsistent offset"
	Duplicate          Violation = "duplicate"
	PollSkip           Violation = "poll skip"
	NonMonotonicPoll   Violation = "non-monotonic poll"
	NonMonotonicSend   Violation = "non-monotonic send"
	Order              Violation = "order"
	AbortedRead        Violation = "aborted read"
	Phantom            Violation = "phantom"
	Corrupt            Violation = "corrupt"
	WeakAck            Violation = "weak ack"
	NotLinearizable    Violation = "not linearizable"
	Unresolved         Violation = "unresolved"
	Disowned           Violation = "disowned"
	Unreadable         Violation = "unreadable"
	DamagedStore       Violation = "damaged store"
	Crash              Violation = "crash"
)

// maxExamples bounds the examples that are kept of each violation.
const maxExamples = 5

// Finding is a kind of violation that was found.
type Finding struct {
	Violation Violation `json:"violation"`
	Count     int       `json:"count"`
	Examples  []string  `json:"examples"` // the first few
}

// Findings are what was found, by kind.
type Findings []Finding

// Count is how many violations there are.
func (f Findings) Count() int {
	n := 0
	for _, one := range f {
		n += one.Count
	}
	return n
}

// Of is how many violations of a kind there are.
func (f Findings) Of(v Violation) int {
	for _, one := range f {
		if one.Violation == v {
			return one.Count
		}
	}
	return 0
}

// String is a line for each kind.
func (f Findings) String() string {
	var lines []string
	for _, one := range f {
		lines = append(lines, fmt.Sprintf("%s: %d, for instance %s", one.Violation, one.Count, strings.Join(one.Examples, "; ")))
	}
	return strings.Join(lines, "\n")
}

// add counts a violation.
func (f *Findings) add(v Violation, example string) {
	i := slices.IndexFunc(*f, func(one Finding) bool { return one.Violation == v })
	if i < 0 {
		i = len(*f)
		*f = append(*f, Finding{Violation: v})
	}
	one := &(*f)[i]
	one.Count++
	if len(one.Examples) < maxExamples {
		one.Examples = append(one.Examples, example)
	}
}

// Result is what a history says.
type Result struct {
	Violations Findings
	Excused    Findings // see the package's documentation
	Statistics Statistics
	// Undecided names partitions whose linearizability could not be decided in
	// the time allowed.
	Undecided []string
	// Pictures show partitions that are not linearizable.
	Pictures []Picture
}

// Picture is a drawing of a partition's operations, an HTML page.
type Picture struct {
	Name string // topic/partition
	Draw func(w io.Writer) error
}

// Statistics count what was done.
type Statistics struct {
	Sent       int            `json:"sent"`
	Acked      map[Level]int  `json:"acked"`
	NotStored  int            `json:"not_stored"`
	Unknown    int            `json:"unknown"`
	Unresolved int            `json:"unresolved"`
	Read       int            `json:"read"`  // messages that readers were given
	Tails      int            `json:"tails"` // how often an end was asked for
	Kept       int            `json:"kept"`  // messages that the final reader found
	Faults     map[string]int `json:"faults"`
	// Linear counts the operations that were checked for linearizability.
	Linear int `json:"linear"`
	// SlowestAck is the longest time from a send to its ack, in µs.
	SlowestAck int64  `json:"slowest_ack_us"`
	Outage     Outage `json:"outage"`
}

// Operations is how many operations were done in all.
func (s Statistics) Operations() int { return s.Sent + s.Read + s.Tails }

// Outage is a time in which a partition gave no ack although a message was
// waiting for one.
type Outage struct {
	Topic     string   `json:"topic,omitempty"`
	Partition int32    `json:"partition"`
	From      int64    `json:"from_us"` // since the start
	To        int64    `json:"to_us"`
	Faults    []string `json:"faults,omitempty"` // that were in force meanwhile
}

// Length is how long it took, in µs.
func (o Outage) Length() int64 { return o.To - o.From }
