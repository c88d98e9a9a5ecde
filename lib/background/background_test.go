package background_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/background"
	"github.com/seaweedmq/smq/lib/smq"
)

func TestStopEndsAndWaits(t *testing.T) {
	g := background.New()
	begun := make(chan struct{})
	ended := false
	g.Go(func(ctx context.Context) {
		close(begun)
		<-ctx.Done()
		ended = true
	})
	<-begun
	g.Stop()
	g.Stop()
	if !ended {
		t.Fatal("Stop came back before its task had ended")
	}
	if err := g.Run(func(context.Context) error { return nil }); !errors.Is(err, background.ErrStopped) {
		t.Fatalf("after Stop: %v", err)
	}
}

func TestOnceIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := background.New()
		defer g.Stop()
		runs := 0
		proceed := make(chan struct{})
		want := errors.New("outcome")
		outcomes := make(chan error)
		for range 10 {
			go func() {
				outcomes <- g.Once(t.Context(), "key", time.Minute, func(context.Context) error {
					runs++
					<-proceed
					return want
				})
			}()
		}
		synctest.Wait()
		close(proceed)
		for range 10 {
			if err := <-outcomes; err != want {
				t.Errorf("got %v", err)
			}
		}
		if runs != 1 {
			t.Errorf("it ran %d times", runs)
		}
	})
}

func TestOnceOutlivesItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := background.New()
		defer g.Stop()
		ended := make(chan error, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := g.Once(ctx, "key", time.Minute, func(ctx context.Context) error {
			<-ctx.Done()
			ended <- ctx.Err()
			return ctx.Err()
		})
		if !errors.Is(err, smq.ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) || len(ended) != 0 {
			t.Fatalf("got %v, ended: %d", err, len(ended))
		}
		start := time.Now()
		if err := <-ended; !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 59*time.Second {
			t.Fatalf("the task ended with %v after %v more", err, time.Since(start))
		}
	})
}
