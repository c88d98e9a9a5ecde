//go:build unix

package command_test

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// pollEvery is how often the scripts' commands look whether something has
// happened, and patience how long they go on.
const (
	pollEvery = 20 * time.Millisecond
	patience  = 2 * time.Minute
)

// daemons are the processes that a script has started, by name.
type daemons struct {
	ctx    context.Context // of the test
	mu     sync.Mutex
	byName map[string]*running
}

type daemonsKey struct{}

// running is one of them.
type running struct {
	cmd       *exec.Cmd
	ended     chan struct{}
	code      int    // once it has ended
	addresses string // file
}

// newDaemons kills, at the end of the script, what it has left running.
func newDaemons(ctx context.Context, env *testscript.Env) *daemons {
	d := &daemons{ctx: ctx, byName: map[string]*running{}}
	env.Defer(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, r := range d.byName {
			_ = r.cmd.Process.Kill() // it may have ended
			<-r.ended
		}
	})
	return d
}

func daemonsOf(ts *testscript.TestScript) *daemons { return ts.Value(daemonsKey{}).(*daemons) }

func (d *daemons) get(ts *testscript.TestScript, name string) *running {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.byName[name]
	if r == nil {
		ts.Fatalf("nothing named %s was started", name)
	}
	return r
}

// launch starts a program in the background with its output in NAME.out and
// NAME.err. A name may be used again when its process has ended.
func (d *daemons) launch(ts *testscript.TestScript, name string, args []string) *running {
	path, err := exec.LookPath(args[0])
	ts.Check(err)
	cmd := exec.Command(path, args[1:]...)
	cmd.Args[0] = args[0]
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = environment(ts)
	stdout, err := os.Create(ts.MkAbs(name + ".out"))
	ts.Check(err)
	defer stdout.Close()
	stderr, err := os.Create(ts.MkAbs(name + ".err"))
	ts.Check(err)
	defer stderr.Close()
	cmd.Stdout, cmd.Stderr = stdout, stderr
	r := &running{cmd: cmd, ended: make(chan struct{}), addresses: ts.MkAbs(name + ".addr")}
	ts.Check(cmd.Start())
	go func() {
		_ = cmd.Wait() // the state says how it ended
		r.code = exitCode(cmd.ProcessState)
		close(r.ended)
	}()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.byName[name] = r
	return r
}

// exitCode is as shells have it: 128 and the signal for a process that one
// ended.
func exitCode(state *os.ProcessState) int {
	if s, ok := state.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return 128 + int(s.Signal())
	}
	return state.ExitCode()
}

// environment are the variables that scripts set, for daemons.
func environment(ts *testscript.TestScript) []string {
	env := os.Environ()
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "SMQ_MASTER", "SMQ_TIMEOUT", "PATH", "TMPDIR"} {
		env = append(env, name+"="+ts.Getenv(name))
	}
	return env
}

// cmdUp runs a cluster, with the arguments added to smq-admin up, and points
// SMQ_MASTER to it. It is named cluster.
func cmdUp(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("up cannot fail on purpose; use exits")
	}
	cmdStart(ts, false, append([]string{"cluster", "smq-admin", "up", "--listen", "127.0.0.1:0", "--store", ts.Getenv("STORE"), "--data", "data"}, args...))
	ts.Setenv("SMQ_MASTER", ts.Getenv("cluster_MASTER"))
}

// cmdStart: start NAME PROGRAM ARG… runs a daemon in the background, and waits
// until it is ready. Its addresses are put into variables, for instance
// NAME_GRPC.
func cmdStart(ts *testscript.TestScript, neg bool, args []string) {
	cmdLaunch(ts, neg, args)
	cmdReady(ts, neg, args[:1])
}

// cmdLaunch: launch NAME PROGRAM ARG… runs a daemon in the background.
func cmdLaunch(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: start or launch NAME PROGRAM ARG…")
	}
	addresses := ts.MkAbs(args[0] + ".addr")
	_ = os.Remove(addresses) // one that was killed leaves it behind
	daemonsOf(ts).launch(ts, args[0], append(slices.Clone(args[1:]), "--addr-file", addresses))
}

// cmdReady: ready NAME… waits until daemons that were launched are ready.
func cmdReady(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: ready NAME…")
	}
	for _, name := range args {
		r := daemonsOf(ts).get(ts, name)
		waitUntil(ts, name+" is ready", func() bool {
			select {
			case <-r.ended:
				ts.Fatalf("%s ended with code %d: %s", name, r.code, ts.ReadFile(name+".err"))
			default:
			}
			_, err := os.Stat(r.addresses)
			return err == nil
		})
		for line := range strings.Lines(ts.ReadFile(r.addresses)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			ts.Setenv(name+"_"+key, value)
		}
	}
}

// waitUntil looks again and again whether something has happened.
func waitUntil(ts *testscript.TestScript, what string, happened func() bool) {
	ctx, cancel := context.WithTimeout(daemonsOf(ts).ctx, patience)
	defer cancel()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for !happened() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			ts.Fatalf("waited in vain until %s", what)
		}
	}
}

// cmdSignal: signal NAME INT|TERM|KILL|STOP|CONT.
func cmdSignal(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]syscall.Signal{
		"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL, "STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT,
	}
	if neg || len(args) != 2 || signals[args[1]] == 0 {
		ts.Fatalf("usage: signal NAME INT|TERM|KILL|STOP|CONT")
	}
	ts.Check(daemonsOf(ts).get(ts, args[0]).cmd.Process.Signal(signals[args[1]]))
}

// cmdEnded: ended NAME CODE waits for the end of a process that was started.
func cmdEnded(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: ended NAME CODE")
	}
	r := daemonsOf(ts).get(ts, args[0])
	waitUntil(ts, args[0]+" has ended", func() bool {
		select {
		case <-r.ended:
			return true
		default:
			return false
		}
	})
	if want, err := strconv.Atoi(args[1]); err != nil || r.code != want {
		ts.Fatalf("%s ended with code %d, not %s: %s", args[0], r.code, args[1], ts.ReadFile(args[0]+".err"))
	}
}
