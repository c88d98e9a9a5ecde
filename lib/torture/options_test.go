package torture

import (
	"errors"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/smq"
)

// fewest are options with the least of everything.
func fewest() Options {
	return Options{
		Masters: 1, Brokers: 1, Topics: 1, Partitions: 1, Publishers: 1, Readers: 1, Rate: 1,
		Acks: []client.AckLevel{client.AckStored}, Families: Families(), Every: time.Second, AtOnce: 1,
		Tell: func(string, ...any) {},
	}
}

func TestOptions(t *testing.T) {
	if err := fewest().check(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Options){
		"no masters":          func(o *Options) { o.Masters = 0 },
		"no brokers":          func(o *Options) { o.Brokers = 0 },
		"no kinds of faults":  func(o *Options) { o.Families = nil },
		"no levels":           func(o *Options) { o.Acks = nil },
		"faults all the time": func(o *Options) { o.Every = 0 },
		"a negative rate":     func(o *Options) { o.Rate = -1 },
		"two stores":          func(o *Options) { o.Store, o.Weed = "dir:///x", "weed" },
	} {
		o := fewest()
		change(&o)
		if _, err := Run(t.Context(), o); !errors.Is(err, smq.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheTopicThatIsCheckedMostIsUsedLeast(t *testing.T) {
	for duration, most := range map[time.Duration]float64{time.Second: linearRate, 10 * time.Minute: 17, 10 * time.Hour: 0.3} {
		r := &run{Options: Options{Duration: duration}}
		if got := r.linearRate(); got > most || got*duration.Seconds() > linearMessages+1 {
			t.Errorf("%v: %v messages a second", duration, got)
		}
	}
}
