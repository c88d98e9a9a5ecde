package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/seaweedmq/smq/lib/smq"
)

// harness runs a small command tree, smq-admin, without a process.
type harness struct {
	env      *Env
	out, err bytes.Buffer
	vars     map[string]string
	run      func(e *Env) error // what "thing make" does

	partitions int
	tags       []string
}

func newHarness(t *testing.T) *harness {
	h := &harness{vars: map[string]string{"XDG_CONFIG_HOME": t.TempDir()}}
	h.env = &Env{
		Name: "smq-admin", Stdin: strings.NewReader(""), Stdout: &h.out, Stderr: &h.err,
		Getenv: func(name string) string { return h.vars[name] },
	}
	h.run = func(*Env) error { return nil }
	return h
}

func (h *harness) tree(e *Env) *cobra.Command {
	root := &cobra.Command{Use: "smq-admin"}
	e.AddCommonFlags(root)
	e.AddMasterFlag(root)
	e.AddTimeoutFlag(root, DefaultTimeout, "give up after this long")
	things := &cobra.Command{Use: "thing"}
	makeIt := &cobra.Command{Use: "make NAME", SuggestFor: []string{"new"}, Args: Args("NAME"), RunE: func(*cobra.Command, []string) error { return h.run(e) }}
	makeIt.Flags().IntVar(&h.partitions, "partitions", 64, "how many")
	makeIt.Flags().String("kind", "", "of which kind")
	makeIt.Flags().String("note", "", "what to note")
	MayBeEmpty(makeIt.Flags(), "note")
	makeIt.Flags().StringArrayVar(&h.tags, "tag", nil, "tags")
	e.AddOutputFlag(makeIt)
	things.AddCommand(makeIt)
	root.AddCommand(things)
	return root
}

func (h *harness) call(args ...string) int {
	h.out.Reset()
	h.err.Reset()
	return h.env.Run(context.Background(), h.tree, args)
}

func (h *harness) writeConfig(t *testing.T, text string) {
	t.Helper()
	folder := filepath.Join(h.vars["XDG_CONFIG_HOME"], "smq")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "config.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// words are the words of a command line, of which two quotes are an empty one.
func words(line string) []string {
	all := strings.Fields(line)
	for i := range all {
		all[i] = strings.ReplaceAll(all[i], "''", "")
	}
	return all
}

func TestEmptyValuesOfFlags(t *testing.T) {
	for line, want := range map[string]int{"thing make a --note ''": ExitDone, "thing make a --kind ''": ExitUsage, "thing make a --kind x": ExitDone} {
		h := newHarness(t)
		if code := h.call(words(line)...); code != want {
			t.Errorf("%s: exit code %d, want %d: %s", line, code, want, h.err.String())
		}
	}
	h := newHarness(t)
	h.vars["SMQ_ADMIN_THING_MAKE_KIND"] = "" // as if it were not there
	if code := h.call("thing", "make", "a"); code != ExitDone {
		t.Errorf("empty variable: exit code %d, %s", code, h.err.String())
	}
	h.writeConfig(t, "smq-admin: {thing: {make: {kind: ''}}}")
	if code := h.call("thing", "make", "a"); code != ExitUsage {
		t.Errorf("empty in the file: exit code %d", code)
	}
}

func TestUsageErrors(t *testing.T) {
	tests := []struct{ args, want string }{
		{"thnig make", `smq-admin: unknown command "thnig" for smq-admin, did you mean thing?; see smq-admin --help`},
		{"thing mak x", `smq-admin: unknown command "mak" for smq-admin thing, did you mean make?; see smq-admin thing --help`},
		{"thing new x", `smq-admin: unknown command "new" for smq-admin thing, did you mean make?; see smq-admin thing --help`},
		{"thing qqqq", `smq-admin: unknown command "qqqq" for smq-admin thing; see smq-admin thing --help`},
		{"help thnig", `smq-admin: unknown command "thnig" for smq-admin, did you mean thing?; see smq-admin --help`},
		{"help thing mak", `smq-admin: unknown command "mak" for smq-admin thing, did you mean make?; see smq-admin thing --help`},
		{"help thing make x", `smq-admin: unknown command "x" for smq-admin thing make; see smq-admin thing make --help`},
		{"thnig --help", `smq-admin: unknown command "thnig" for smq-admin, did you mean thing?; see smq-admin --help`},
		{"thing mak x -h", `smq-admin: unknown command "mak" for smq-admin thing, did you mean make?; see smq-admin thing --help`},
		{"thing make", `smq-admin: NAME is missing; see smq-admin thing make --help`},
		{"thing make a b", `smq-admin: unexpected argument "b"; see smq-admin thing make --help`},
		{"thing make ''", `smq-admin: NAME is empty; see smq-admin thing make --help`},
		{"thing make a --kind ''", `smq-admin: --kind is empty: give it a value, or leave it out`},
		{"thing make a --tag ''", `smq-admin: --tag is empty: give it a value, or leave it out`},
		{"thing make a --master ''", `smq-admin: --master is empty: give it a value, or leave it out`},
		{"thing make a --master a:1,", `smq-admin: --master has an empty part: a:1,`},
		{"thing make a --partitoins 3", `smq-admin: unknown flag: --partitoins, did you mean --partitions?; see smq-admin thing make --help`},
		{"thing make a --no-headers", `smq-admin: unknown flag: --no-headers, did you mean -o plain?; see smq-admin thing make --help`},
		{"thing --no-headers", `smq-admin: unknown flag: --no-headers; see smq-admin thing --help`},
		{"thing make a --bootstrap-server x:1", `smq-admin: unknown flag: --bootstrap-server, did you mean --master?; see smq-admin thing make --help`},
		{"thing make a -o jsno", `smq-admin: --output: format "jsno" is not one of table, json, yaml, plain, name, did you mean json?; see smq-admin thing make --help`},
		{"thing make a --timeout soon", `smq-admin: --timeout: "soon" is not a duration; write for instance 500ms, 90s, 1h30m or 7d; see smq-admin thing make --help`},
	}
	for _, test := range tests {
		h := newHarness(t)
		if code := h.call(words(test.args)...); code != ExitUsage {
			t.Errorf("%s: exit code %d, want %d", test.args, code, ExitUsage)
		}
		if got := h.err.String(); got != test.want+"\n" || h.out.Len() > 0 {
			t.Errorf("%s:\ngot  %swant %s\nstdout %q", test.args, got, test.want, h.out.String())
		}
	}
}

func TestGroupWithoutCommandShowsUsage(t *testing.T) {
	h := newHarness(t)
	if code := h.call("thing"); code != ExitUsage || h.out.Len() > 0 || !strings.Contains(h.err.String(), "make") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, h.out.String(), h.err.String())
	}
}

func TestHelpAndVersionAreData(t *testing.T) {
	for line, want := range map[string]string{
		"--help": "Usage:", "--version": "smq-admin ", "help": "Usage:", "help thing make": "smq-admin thing make NAME", "thing make a b --help": "smq-admin thing make NAME",
	} {
		h := newHarness(t)
		if code := h.call(strings.Fields(line)...); code != 0 || h.err.Len() > 0 || !strings.Contains(h.out.String(), want) {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", line, code, h.out.String(), h.err.String())
		}
	}
}

func TestRunTimeErrorIsOneLine(t *testing.T) {
	h := newHarness(t)
	h.run = func(*Env) error { return fmt.Errorf("topic %q: %w\n\twhy: \x1b[31mred", "t", smq.ErrNotFound) }
	code := h.call("thing", "make", "x")
	want := "smq-admin: topic \"t\": not found; why:  [31mred\n"
	if code != ExitNotFound || h.err.String() != want {
		t.Errorf("exit code %d, stderr %q, want %q", code, h.err.String(), want)
	}
}

func TestPanicReachesNoUser(t *testing.T) {
	h := newHarness(t)
	h.run = func(*Env) error { panic("index out of range") }
	code := h.call("thing", "make", "x")
	if code != ExitFailed || strings.Count(h.err.String(), "\n") != 1 || !strings.Contains(h.err.String(), "internal error: index out of range") {
		t.Errorf("exit code %d, stderr %q", code, h.err.String())
	}
}

func TestClosedOutputEndsQuietly(t *testing.T) {
	h := newHarness(t)
	h.run = func(*Env) error { return fmt.Errorf("list: %w", ErrOutputClosed) }
	if code := h.call("thing", "make", "x"); code != 0 || h.err.Len() > 0 {
		t.Errorf("exit code %d, stderr %q", code, h.err.String())
	}
}

func TestPipeWriterNoticesClosedReader(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	if _, err := (pipeWriter{w}).Write([]byte("x")); !errors.Is(err, ErrOutputClosed) {
		t.Errorf("closed pipe: %v", err)
	}
	w.Close()
	if _, err := (pipeWriter{w}).Write([]byte("x")); err == nil || errors.Is(err, ErrOutputClosed) {
		t.Errorf("closed file: %v", err)
	}
}

func TestInterruptedCommand(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		h := newHarness(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		h.run = func(*Env) error {
			cancel(&SignalError{Signal: s})
			return fmt.Errorf("list topics: %w", ctx.Err())
		}
		if code := h.env.Run(ctx, h.tree, []string{"thing", "make", "x"}); code != 128+int(s) || h.err.Len() > 0 {
			t.Errorf("%v: exit code %d, stderr %q", s, code, h.err.String())
		}
	}
}

func TestExitCodes(t *testing.T) {
	interrupted := &SignalError{Signal: syscall.SIGINT}
	tests := []struct {
		err, cause error
		want       int
	}{
		{nil, nil, 0},
		{errors.New("x"), nil, 1},
		{smq.ErrInvalid, nil, 2},
		{Usagef("x"), nil, 2},
		{Exit(ExitPartly, smq.ErrTimeout), nil, 3},
		{smq.ErrNotFound, nil, 4},
		{os.ErrNotExist, nil, 4},
		{smq.ErrTimeout, nil, 5},
		{smq.ErrUnavailable, nil, 5},
		{smq.ErrNotLeader, nil, 5},
		{smq.ErrDraining, nil, 5},
		{smq.ErrOverloaded, nil, 5},
		{context.DeadlineExceeded, nil, 5},
		{smq.ErrExists, nil, 6},
		{smq.ErrConflict, nil, 6},
		{smq.ErrCorrupt, nil, 1},
		{smq.ErrTooLarge, nil, 1},
		{smq.ErrNoSpace, nil, 1},
		{fmt.Errorf("%w: the last answer was: %w", smq.ErrTimeout, smq.ErrNoSpace), nil, 1},
		{Exit(ExitUnhealthy, nil), nil, 10},
		{context.Canceled, interrupted, 130},
		{interrupted, nil, 130},
		{nil, interrupted, 0},
		{Exit(ExitPartly, errors.New("x")), interrupted, 3},
		{&SignalError{Signal: syscall.SIGTERM}, nil, 143},
	}
	for _, test := range tests {
		wrapped := test.err
		if wrapped != nil {
			wrapped = fmt.Errorf("tried: %w", wrapped)
		}
		if got := ExitCode(wrapped, test.cause); got != test.want {
			t.Errorf("ExitCode(%v, %v) = %d, want %d", test.err, test.cause, got, test.want)
		}
	}
}

func TestInfofKeepsQuiet(t *testing.T) {
	h := newHarness(t)
	h.run = func(e *Env) error { e.Infof("made %d", 1); e.Warnf("odd"); return nil }
	h.call("thing", "make", "x")
	if got := h.err.String(); got != "smq-admin: made 1\nsmq-admin: warning: odd\n" {
		t.Errorf("stderr %q", got)
	}
	h.call("-q", "thing", "make", "x")
	if got := h.err.String(); got != "smq-admin: warning: odd\n" {
		t.Errorf("quiet: stderr %q", got)
	}
}

// failingWriter is a full disk behind standard output.
type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestListReportsFailedWrite(t *testing.T) {
	for _, format := range formatNames {
		e := &Env{Stdout: failingWriter{}, Stderr: io.Discard, Flags: Flags{Output: Format(format)}}
		if err := pets.List(e, []pet{{"rex", 3}}); err == nil {
			t.Errorf("%s: no error", format)
		}
	}
}
