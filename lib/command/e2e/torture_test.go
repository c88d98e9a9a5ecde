//go:build unix

package e2e

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestTortureInterrupted interrupts a torture that would last for an hour: it
// mends what it has broken, examines what there is, and reports it.
func TestTortureInterrupted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	dir := filepath.Join(r.dir, "torture")
	var report bytes.Buffer
	p := r.start("torture", "smq-admin", stdio{out: &report},
		"torture", "--duration", "1h", "--seed", "1", "--masters", "1", "--brokers", "3", "--topics", "1", "--faults", "kill", "--acks", "stored", "--dir", dir, "--keep")
	await(t, "faults have come", func() error {
		if p.ended() {
			t.Fatalf("it has ended with exit code %d: %s", p.exit(), r.log("torture"))
		}
		if text := r.log("torture").String(); !strings.Contains(text, " sent, ") || strings.Contains(text, " 0 acked") {
			return fmt.Errorf("it says %q", text)
		}
		return nil
	})
	p.signal(syscall.SIGINT)
	if code := p.exit(); code != 130 {
		t.Errorf("exit code %d: %s", code, r.log("torture"))
	}
	for _, line := range []string{`violations:      0`, `kept in:         ` + dir} {
		if !strings.Contains(report.String(), line) {
			t.Errorf("%q is not in the report:\n%s", line, &report)
		}
	}
	if files, err := filepath.Glob(filepath.Join(dir, "history.ndjson")); err != nil || len(files) != 1 {
		t.Errorf("the history: %v, %v", files, err)
	}
}
