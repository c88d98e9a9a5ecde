package torture

import (
	"context"
	"fmt"
	"os/exec"
	"time"

	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/smq"
)

// Options say what to torture, and how.
type Options struct {
	// Command makes the process of smq-master or smq-broker with arguments.
	// Required.
	Command func(binary string, args ...string) *exec.Cmd
	// Dir is a directory for everything: histories, logs, the masters' state,
	// the store if it is a directory. Required.
	Dir string

	// Store is the URL of the store to use, below which every run takes a
	// folder of its own; empty: a directory in Dir.
	Store string
	// Weed is the binary of a SeaweedFS server that is to be run as the store;
	// then Store is empty.
	Weed string
	// Keep leaves what is in Store there in any case.
	Keep bool

	Masters, Brokers int
	// Memory of each broker, in bytes.
	Memory int64

	Topics     int     // besides the one whose operations are few and checked for linearizability
	Partitions int32   // of each topic
	Replicas   int32   // of each topic
	Publishers int     // of each topic
	Readers    int     // of each topic
	Rate       float64 // messages a second, in all
	// ScaleEvery is how often segments of a topic are split or merged by hand, on
	// average, besides what topics do by themselves; 0: they stay as they are.
	ScaleEvery time.Duration
	// Acks are the levels that publishers ask for, in turn.
	Acks []client.AckLevel

	Families []Family
	Duration time.Duration // of the faults
	// Stop ends the faults early when it is closed; what there is then is mended
	// and examined all the same. May be nil.
	Stop   <-chan struct{}
	Every  time.Duration // how often one comes, on average
	AtOnce int           // how many there are at a time, at most
	Seed   uint64        // of their order
	// Settle is how long everything may take to work again when all faults have
	// been mended.
	Settle time.Duration

	// Tell hears how it goes on, a line at a time. Required.
	Tell func(format string, args ...any)
	// Detail hears every fault; nil: nobody does.
	Detail func(format string, args ...any)
}

func (o Options) check() error {
	for _, c := range []struct {
		what  string
		value float64
		least float64
	}{
		{"masters", float64(o.Masters), 1}, {"brokers", float64(o.Brokers), 1},
		{"topics", float64(o.Topics), 1}, {"partitions", float64(o.Partitions), 1},
		{"publishers", float64(o.Publishers), 1}, {"readers", float64(o.Readers), 1},
		{"faults at once", float64(o.AtOnce), 1}, {"kinds of faults", float64(len(o.Families)), 1},
		{"levels of acks", float64(len(o.Acks)), 1}, {"messages a second", o.Rate, 1},
		{"ms between faults", float64(o.Every.Milliseconds()), 1},
	} {
		if c.value < c.least {
			return fmt.Errorf("%w number of %s: %v, the least is %v", smq.ErrInvalid, c.what, c.value, c.least)
		}
	}
	if o.Store != "" && o.Weed != "" {
		return fmt.Errorf("%w store: either one that runs or one to be started", smq.ErrInvalid)
	}
	return nil
}

func (o Options) detail(format string, args ...any) {
	if o.Detail != nil {
		o.Detail(format, args...)
	}
}

// pause waits, unless ctx ends before.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
