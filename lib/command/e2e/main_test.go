//go:build unix

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	// What the binaries are made of, so that go test does not repeat an old
	// result when that has changed.
	_ "github.com/seaweedmq/smq/lib/command/admin"
	_ "github.com/seaweedmq/smq/lib/command/broker"
	_ "github.com/seaweedmq/smq/lib/command/master"
	_ "github.com/seaweedmq/smq/lib/command/pub"
	_ "github.com/seaweedmq/smq/lib/command/sub"
)

// raced reports whether the race detector, which takes much memory, is in the
// binaries.
func raced() bool { return os.Getenv("SMQ_E2E_RACE") != "" }

// bin is the folder with the binaries, built once for all tests.
var bin string

func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "smq-e2e")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	bin = filepath.Join(dir, "bin")
	build := exec.Command("go", "build", "-o", bin+"/")
	if raced() {
		build.Args = append(build.Args, "-race")
	}
	build.Args = append(build.Args, "github.com/seaweedmq/smq/cmd/...")
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build the binaries: %w\n%s", err, out)
	}
	defer stopServers()
	return m.Run(), nil
}

// scaled is n, as many times as SMQ_E2E_SCALE says.
func scaled(t testing.TB, n int) int {
	t.Helper()
	text := os.Getenv("SMQ_E2E_SCALE")
	if text == "" {
		return n
	}
	factor, err := strconv.Atoi(text)
	if err != nil || factor < 1 {
		t.Fatalf("SMQ_E2E_SCALE=%q is not a number from 1 on", text)
	}
	return n * factor
}
