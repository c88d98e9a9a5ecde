package background

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b Backoff
		for want := minBackoff; want <= maxBackoff; want *= 2 {
			since := time.Now()
			if err := b.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(since); took < want/2 || took >= want {
				t.Errorf("waited %v, want up to %v", took, want)
			}
		}
		for range 3 {
			since := time.Now()
			if err := b.Next(t.Context()); err != nil || time.Since(since) >= maxBackoff {
				t.Errorf("waited %v, %v", time.Since(since), err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := b.Next(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}
