//go:build unix

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait. It is long because nothing may depend on how fast
// the machine is.
const patience = 90 * time.Second

// pollEvery is the pause between two looks at what is waited for.
const pollEvery = 50 * time.Millisecond

// await looks until nothing is missing any more, and ends the test with what is
// when its patience ends.
func await(t testing.TB, what string, missing func() error) {
	t.Helper()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	late := time.After(patience)
	for {
		err := missing()
		if err == nil {
			return
		}
		select {
		case <-late:
			t.Fatalf("%s: not within %v: %v", what, patience, err)
		case <-tick.C:
		}
	}
}

// rig is what a test has started, and where its files are.
type rig struct {
	t   testing.TB
	dir string

	mu        sync.Mutex
	processes []*process
	logs      map[string]*logFile // by name, in dir
}

// newRig makes an empty rig. At the end of the test everything in it is killed,
// logs are looked through, and shown if the test has failed.
func newRig(t testing.TB) *rig {
	r := &rig{t: t, dir: t.TempDir(), logs: make(map[string]*logFile)}
	t.Cleanup(r.end)
	return r
}

// process is a running child.
type process struct {
	t    testing.TB
	name string
	cmd  *exec.Cmd
	done chan struct{} // closed after its end
}

// stdio are a child's standard streams. Standard error goes to a log.
type stdio struct {
	in  io.Reader
	out io.Writer
}

// start starts one of the binaries, or another program when binary has a slash.
// Its log, and what it is called in messages, is named name; processes of the
// same name share a log.
func (r *rig) start(name, binary string, s stdio, args ...string) *process {
	r.t.Helper()
	if !bytes.ContainsRune([]byte(binary), '/') {
		binary = filepath.Join(bin, binary)
	}
	cmd := exec.Command(binary, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.in, s.out, r.log(name)
	cmd.Dir, cmd.Env = r.dir, environment()
	cmd.SysProcAttr = attributes()
	p := &process{t: r.t, name: name, cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The child dies with this thread, so it is kept for it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is in its state
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		r.t.Fatalf("start %s: %v", name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.processes = append(r.processes, p)
	return p
}

// environment keeps the machine's own configuration away.
func environment() []string {
	env := []string{"NO_COLOR=1", "XDG_CONFIG_HOME=/nonexistent", "HOME=/nonexistent", "PATH=" + os.Getenv("PATH")}
	for _, name := range []string{"GOCOVERDIR", "TMPDIR"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// signal sends a signal to the child, which must not have ended.
func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("signal %s: %v", p.name, err)
	}
}

// kill ends the child at once, whatever it is doing, paused or not.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it fails when the child has ended
	<-p.done
}

// pause freezes the child. It returns when it stands still.
func (p *process) pause() {
	p.t.Helper()
	p.signal(syscall.SIGSTOP)
	if err := awaitPause(p.cmd.Process.Pid); err != nil {
		p.t.Fatalf("pause %s: %v", p.name, err)
	}
}

// resume lets a child that is paused go on.
func (p *process) resume() {
	p.t.Helper()
	p.signal(syscall.SIGCONT)
}

// exit waits for the child's end and returns its exit code.
func (p *process) exit() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatalf("%s has not ended within %v", p.name, patience)
	}
	return p.cmd.ProcessState.ExitCode()
}

// ended reports whether the child has ended.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// watchMemory looks at what the child holds in memory until it ends, and returns
// the most that was seen, in bytes. What the system counts for a child that has
// ended begins with its parent's memory, and so is of no use.
func watchMemory(p *process) int64 {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	var most int64
	for {
		if _, peak, err := memoryOf(p.cmd.Process.Pid); err == nil {
			most = max(most, peak)
		}
		select {
		case <-p.done:
			return most
		case <-tick.C:
		}
	}
}

// logFile is what processes of a name have written to standard error.
type logFile struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logFile) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logFile) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// log is the log of a name.
func (r *rig) log(name string) *logFile {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.logs[name] == nil {
		r.logs[name] = new(logFile)
	}
	return r.logs[name]
}

// shownLog is how much of the end of each log is shown when a test has failed.
const shownLog = 8000

// end kills everything and looks through the logs.
func (r *rig) end() {
	for _, p := range r.processes {
		p.kill()
	}
	for name, log := range r.logs {
		text := log.String()
		if fault := faults.FindStringIndex(text); fault != nil {
			r.t.Errorf("the log of %s has a fault of the program in it: %s", name, excerpt(text, fault[0]))
		}
	}
	if !r.t.Failed() {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(r.logs)) {
		if text := r.logs[name].String(); text != "" {
			r.t.Logf("--- the end of the log of %s:\n%s", name, text[max(len(text)-shownLog, 0):])
		}
	}
}

// faults is how a program's own fault shows in a log: a panic, caught or not,
// the trace of a stack, a race.
var faults = regexp.MustCompile(`(?i)panic|goroutine \d+ \[|fatal error|data race|internal error|runtime error|\.go:\d+`)

func excerpt(text string, at int) string {
	return text[max(at-500, 0):min(at+4000, len(text))]
}

// result is what a command that has ended has written.
type result struct {
	code           int
	stdout, stderr string
}

// said counts the lines on standard error that are not warnings, or their end.
func said(stderr string) int {
	n := 0
	for line := range strings.Lines(stderr) {
		if !strings.Contains(line, ": warning: ") && !strings.Contains(line, ": acks come again") {
			n++
		}
	}
	return n
}

func (r result) String() string {
	return fmt.Sprintf("exit code %d, standard error %q", r.code, r.stderr)
}

// run runs a command to its end.
func (r *rig) run(s stdio, binary string, args ...string) result {
	r.t.Helper()
	var out bytes.Buffer
	if s.out == nil {
		s.out = &out
	}
	r.mu.Lock()
	name := fmt.Sprintf("%s-%d", binary, len(r.processes))
	r.mu.Unlock()
	code := r.start(name, binary, s, args...).exit()
	return result{code: code, stdout: out.String(), stderr: r.log(name).String()}
}
