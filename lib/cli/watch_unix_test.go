//go:build !windows

package cli

import (
	"context"
	"os"
	"testing"
)

func TestWatchOutputNoticesThatTheReaderLeaves(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ctx, cancel := (&Env{Stdout: pipeWriter{w}}).WatchOutput(t.Context())
	defer cancel()
	if ctx.Err() != nil {
		t.Fatal("ended while the reader was there")
	}
	r.Close()
	<-ctx.Done()
	if cause := context.Cause(ctx); cause != ErrOutputClosed {
		t.Errorf("cause %v", cause)
	}
}
