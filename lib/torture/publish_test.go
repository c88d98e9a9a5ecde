package torture

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
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
