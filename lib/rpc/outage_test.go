package rpc

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/smqpb"
)

// heard are the levels and messages of what was logged.
func heard(b *lockedBuffer) []string {
	var lines []string
	for line := range strings.Lines(b.String()) {
		_, line, _ = strings.Cut(line, "level=")
		line, _, _ = strings.Cut(line, " err=")
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

func TestAnOutageOfTheMastersIsLoggedRarely(t *testing.T) {
	inTown(t, func(t *testing.T, w *town) {
		var log lockedBuffer
		c := NewCluster([]string{"m:1"}, w.conns, log.logger())
		ctx, cancel := within(time.Second)
		_, err := c.Info(ctx) // nothing is said of a moment
		cancel()
		if err == nil || log.String() != "" {
			t.Fatalf("got %v, heard %q", err, log.String())
		}
		time.AfterFunc(90*time.Second, func() { w.start("m:1", &node{info: says("m:1", "b:1")}) })
		if _, err := c.Info(t.Context()); err != nil {
			t.Fatal(err)
		}
		warning := `WARN msg="no master answers, trying again"`
		if got := heard(&log); len(got) != 3 || got[0] != warning || got[1] != warning ||
			!strings.HasPrefix(got[2], `INFO msg="a master answers again" after=1m3`) {
			t.Errorf("heard %q", got)
		}
		if !strings.Contains(log.String(), "m:1 (connection refused)") {
			t.Errorf("heard no reason: %s", log.String())
		}
	})
}

func TestThatNoBrokerLeadsIsLogged(t *testing.T) {
	inTown(t, func(t *testing.T, w *town) {
		var log lockedBuffer
		w.start("m:1", &node{info: func() (*smqpb.ClusterInfo, error) { return says("m:1", "")() }})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := NewCluster([]string{"m:1"}, w.conns, log.logger()).Leader(ctx, lookup); err == nil {
			t.Error("it worked")
		}
		if got := heard(&log); !slices.Equal(got, []string{`WARN msg="no leading broker answers, trying again"`}) {
			t.Errorf("heard %q", got)
		}
	})
}
