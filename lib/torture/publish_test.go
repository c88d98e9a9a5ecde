package torture

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/torture/check"
)

func TestWhatIsMendedMaySettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		using, stop := context.WithCancel(t.Context())
		ctx, cancel := settled(t.Context(), using, time.Minute)
		defer cancel()
		<-time.After(time.Hour)
		if ctx.Err() != nil {
			t.Error("it ended though the use goes on")
		}
		stop()
		begun := time.Now()
		<-ctx.Done()
		if took := time.Since(begun); took != time.Minute {
			t.Errorf("it ended after %v", took)
		}
		ctx, cancel = settled(t.Context(), using, time.Minute)
		synctest.Wait()
		cancel()
		<-ctx.Done()
	})
}

func TestNotReadable(t *testing.T) {
	topic := smq.Topic{Namespace: smq.DefaultNamespace, Name: "t"}
	for err, want := range map[error]check.EventKind{smq.ErrOffsetOutOfRange: check.Beyond, smq.ErrCorrupt: check.Broken} {
		e := notReadable("somebody", topic, &client.PartitionError{Partition: 3, Offset: 7, Err: err})
		if e.Kind != want || e.Who != "somebody" || e.Topic != "t" || e.Partition != 3 || e.Offset != 7 {
			t.Errorf("%v: %+v", err, e)
		}
	}
}
