//go:build unix

package e2e

import (
	"bufio"
	"os"
	"testing"
)

// TestEventsEndWithTheirReader leaves smq-admin events -f after a line, as head
// does: it ends though nothing happens any more.
func TestEventsEndWithTheirReader(t *testing.T) {
	t.Parallel()
	c := newCluster(t, newStore(t), 1)
	c.createTopic("t")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	events := c.start("events", "smq-admin", stdio{out: w}, "events", "-f", "--since", "1h", "--master", c.masterList())
	w.Close() // the child has it
	if _, err := bufio.NewReader(r).ReadString('\n'); err != nil {
		t.Error(err)
	}
	r.Close()
	if code := events.exit(); code != 0 {
		t.Errorf("exit code %d: %s", code, c.log("events"))
	}
}
