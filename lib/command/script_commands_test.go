//go:build unix

package command_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdExits: exits CODE PROGRAM ARG… runs a program that must end with that exit
// code. Its output can be looked at as after exec.
func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got := run(ts, args[1:]); got != want {
		ts.Fatalf("%s ended with code %d, not %d", strings.Join(args[1:], " "), got, want)
	}
}

// run runs a program and returns its exit code.
func run(ts *testscript.TestScript, args []string) int {
	err := ts.Exec(args[0], args[1:]...)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exitCode(exit.ProcessState)
	}
	ts.Fatalf("%s: %v", args[0], err)
	return -1
}

// cmdEventual: eventual PROGRAM ARG… runs a program until it succeeds.
func cmdEventual(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: eventual PROGRAM ARG…")
	}
	waitUntil(ts, strings.Join(args, " "), func() bool { return run(ts, args) == 0 })
}

// cmdGet: get STATUS URL FILE fetches a URL, which must answer with that status,
// into a file.
func cmdGet(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: get STATUS URL FILE")
	}
	resp, err := http.Get(args[1])
	ts.Check(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	ts.Check(err)
	if strconv.Itoa(resp.StatusCode) != args[0] {
		ts.Fatalf("%s answers %s: %s", args[1], resp.Status, body)
	}
	writeFile(ts, args[2], body)
}

// cmdPorts: ports NAME… sets variables to ports that are free.
func cmdPorts(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: ports NAME…")
	}
	for _, name := range args {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		ts.Check(err)
		defer l.Close() // not before all are found
		_, port, err := net.SplitHostPort(l.Addr().String())
		ts.Check(err)
		ts.Setenv(name, port)
	}
}

func writeFile(ts *testscript.TestScript, name string, content []byte) {
	ts.Check(os.WriteFile(ts.MkAbs(name), content, 0o644))
}
