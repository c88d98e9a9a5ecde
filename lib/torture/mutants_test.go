//go:build torture

package torture_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seaweedmq/smq/lib/torture"
	"github.com/seaweedmq/smq/lib/torture/check"
)

// mutants are rules of the system that are broken on purpose, each in one
// place. A torture with the right faults must find them.
var mutants = []struct {
	name     string
	file     string // below the module's root
	old, new string // old is there once
	faults   string
	want     []check.Violation // at least one of them
}{
	{
		name:   "messages are acked before they are stored",
		file:   "lib/seglog/flush.go",
		old:    "\tc := newCreation(l, f)\n",
		new:    "\tl.mu.Lock()\n\tearly := unacked(f.entries)\n\tfor i := range f.entries {\n\t\tf.entries[i].acked = true\n\t}\n\tl.mu.Unlock()\n\tdeliver(early, nil, Stored, func(smq.Position) error { return nil })\n\tc := newCreation(l, f)\n",
		faults: "kill",
		want:   []check.Violation{check.LostWrite, check.InconsistentOffset},
	},
	{
		name:   "a successor does not know what producers have sent",
		file:   "lib/seglog/state.go",
		old:    "\tfor _, m := range snap.Producers {\n\t\tif s.rng.Contains(m.Partition) {",
		new:    "\tfor _, m := range snap.Producers {\n\t\tif false {",
		faults: "kill",
		// Publishers that would make a duplicate give up instead.
		want: []check.Violation{check.Duplicate, check.Order, check.Disowned},
	},
	{
		name:   "messages are acked as replicated before any follower holds them",
		file:   "lib/seglog/replication.go",
		old:    "func (l *Log) notify() {\n",
		new:    "func (l *Log) notify() {\n\tfor i := range l.held {\n\t\tl.Held(i, 1<<62)\n\t}\n",
		faults: "kill",
		want:   []check.Violation{check.LostWrite, check.InconsistentOffset},
	},
	{
		name:   "an owner does not notice that its segment was sealed",
		file:   "lib/seglog/creation.go",
		old:    "\tif ownership(c.f.footer, theirs) == nil {\n\t\treturn true, nil\n\t}\n",
		new:    "\t_ = ownership\n\tif true {\n\t\treturn true, nil\n\t}\n",
		faults: "partition",
		want:   []check.Violation{check.LostWrite, check.InconsistentOffset},
	},
}

// tortureLength is how long each mutant has to show itself, in each of seeds
// runs.
const (
	tortureLength = "30s"
	seeds         = 3
)

// TestTheSystemKeepsItsPromises tortures what the mutants are made from, with the
// same faults.
func TestTheSystemKeepsItsPromises(t *testing.T) {
	root, binary := moduleRoot(t), filepath.Join(t.TempDir(), "smq-admin")
	build(t, root, "-o", binary)
	for _, faults := range []string{"kill", "partition"} {
		if found := tortureBinary(t, binary, faults, 1).Violations; found.Count() > 0 {
			t.Errorf("%s: %v", faults, found)
		}
	}
}

// build builds smq-admin.
func build(t *testing.T, root string, flags ...string) {
	t.Helper()
	cmd := exec.Command("go", append(append([]string{"build"}, flags...), "./cmd/smq-admin")...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
}

func TestMutantsAreFound(t *testing.T) {
	root := moduleRoot(t)
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			binary := buildMutant(t, root, m.file, m.old, m.new)
			var found check.Findings
			for seed := range seeds {
				found = tortureBinary(t, binary, m.faults, seed+1).Violations
				if slices.ContainsFunc(m.want, func(v check.Violation) bool { return found.Of(v) > 0 }) {
					t.Logf("seed %d:\n%v", seed+1, found)
					return
				}
			}
			t.Errorf("nothing of %v was found in %d times %s, but: %v", m.want, seeds, tortureLength, found)
		})
	}
}

func moduleRoot(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(strings.TrimSpace(string(out)))
}

// buildMutant builds smq-admin with a place in one file changed.
func buildMutant(t *testing.T, root, file, from, to string) string {
	t.Helper()
	path := filepath.Join(root, filepath.FromSlash(file))
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), from); n != 1 {
		t.Fatalf("%s has the place to be changed %d times: fit the mutant to what it has become", file, n)
	}
	dir := t.TempDir()
	changed := filepath.Join(dir, "changed.go")
	if err := os.WriteFile(changed, []byte(strings.Replace(string(source), from, to, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		t.Fatal(err)
	}
	overlayFile, binary := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "smq-admin")
	if err := os.WriteFile(overlayFile, overlay, 0o644); err != nil {
		t.Fatal(err)
	}
	build(t, root, "-overlay", overlayFile, "-o", binary)
	return binary
}

// tortureBinary tortures what a binary is made of.
func tortureBinary(t *testing.T, binary, faults string, seed int) torture.Report {
	t.Helper()
	cmd := exec.Command(binary, "torture", "--duration", tortureLength, "--faults", faults, "--seed", fmt.Sprint(seed),
		"--masters", "1", "--brokers", "3", "--topics", "2", "--every", "1s", "--settle", "20s", "--dir", filepath.Join(t.TempDir(), "run"), "-q", "-o", "json")
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err := cmd.Run()
	var report torture.Report
	if decodeErr := json.Unmarshal(out.Bytes(), &report); decodeErr != nil {
		t.Fatalf("no report: %v, %v\n%s", err, decodeErr, complaints.String())
	}
	if code := cmd.ProcessState.ExitCode(); (code == 0) != (report.Violations.Count() == 0) {
		t.Errorf("exit code %d with %d violations", code, report.Violations.Count())
	}
	return report
}
