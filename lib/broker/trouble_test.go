package broker

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
)

func TestTroubleOfASegment(t *testing.T) {
	for want, s := range map[error]seglog.Stats{
		nil:            {OldestUnsent: time.Second},
		smq.ErrTimeout: {OldestUnsent: time.Minute},
		smq.ErrNoSpace: {OldestUnsent: time.Minute, StoreError: smq.ErrNoSpace},
	} {
		if err := troubleOf(s); !errors.Is(err, want) {
			t.Errorf("%+v: got %v, want %v", s, err, want)
		}
	}
}

func TestSegmentsThatCannotBeOpenedSpeakAgainstTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o opening
		o.failed(smq.ErrNotOwner)
		if err := o.trouble(); err != nil {
			t.Errorf("another's segment: %v", err)
		}
		o.failed(smq.ErrNoSpace)
		if err := o.trouble(); !errors.Is(err, smq.ErrNoSpace) {
			t.Errorf("a full store: %v", err)
		}
		o.worked()
		if err := o.trouble(); err != nil {
			t.Errorf("after success: %v", err)
		}
		o.failed(smq.ErrNoSpace)
		time.Sleep(openingFor + 1)
		if err := o.trouble(); err != nil {
			t.Errorf("long after: %v", err)
		}
	})
}
