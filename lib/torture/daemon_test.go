//go:build unix

package torture

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/torture/wire"
)

// patience bounds what must happen.
const patience = time.Minute

// newTestDaemon makes a daemon that is a child of a manner.
func newTestDaemon(t *testing.T, manner string) (d *daemon, died chan string) {
	t.Helper()
	network := wire.New(nil)
	t.Cleanup(network.Close)
	died = make(chan string, 10)
	d = &daemon{name: "it", dir: t.TempDir(), died: func(_ *daemon, how string) { died <- how }}
	door, err := network.Door(d.name)
	if err != nil {
		t.Fatal(err)
	}
	d.doors = []*wire.Door{door}
	d.command = childCommand(d, manner)
	t.Cleanup(d.kill)
	return d, died
}

func start(t *testing.T, d *daemon) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := d.start(); err != nil {
		t.Fatal(err)
	}
	if err := d.awaitReady(ctx); err != nil {
		t.Fatal(err)
	}
}

// said is what is heard at the daemon's door.
func said(t *testing.T, d *daemon) string {
	t.Helper()
	c, err := net.Dial("tcp", d.address())
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	text, _ := io.ReadAll(c) // a reset is an answer too
	return string(text)
}

func TestADaemonComesAndGoesBehindItsDoor(t *testing.T) {
	d, died := newTestDaemon(t, "good")
	start(t, d)
	if got := said(t, d); got != "good" {
		t.Errorf("it said %q", got)
	}
	address := d.address()
	d.kill()
	if d.running() != nil || said(t, d) == "good" {
		t.Error("it is there though it was killed")
	}
	d.kill() // harmless
	start(t, d)
	if got := said(t, d); got != "good" || d.address() != address {
		t.Errorf("started again, it said %q at %s, before at %s", got, d.address(), address)
	}
	if err := d.start(); err != nil {
		t.Errorf("started once more: %v", err)
	}
	if err := d.stop(t.Context()); err != nil {
		t.Errorf("stop: %v", err)
	}
	if err := d.stop(t.Context()); err != nil {
		t.Errorf("stop what has stopped: %v", err)
	}
	if len(died) > 0 {
		t.Errorf("it died: %s", <-died)
	}
}

func TestADaemonThatHangsIsKilled(t *testing.T) {
	d, died := newTestDaemon(t, "stubborn")
	start(t, d)
	p := d.running()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.stop(ctx); !errors.Is(err, errHung) {
		t.Errorf("stop: %v", err)
	}
	<-p.ended
	if len(died) > 0 {
		t.Errorf("it died: %s", <-died)
	}
}

func TestADaemonThatEndsByItself(t *testing.T) {
	d, died := newTestDaemon(t, "crash")
	if err := d.start(); err != nil {
		t.Fatal(err)
	}
	err := d.awaitReady(t.Context())
	if !errors.Is(err, smq.ErrUnavailable) {
		t.Errorf("await: %v", err)
	}
	if how := <-died; !strings.Contains(how, "exit status 3") || !strings.HasSuffix(how, "last words") {
		t.Errorf("it died so: %s", how)
	}
}

func TestADaemonThatIsPausedCanBeKilled(t *testing.T) {
	d, _ := newTestDaemon(t, "good")
	start(t, d)
	p := d.running()
	if err := freezeProcess(p); err != nil {
		t.Fatal(err)
	}
	if err := thawProcess(p); err != nil {
		t.Fatal(err)
	}
	if got := said(t, d); got != "good" {
		t.Errorf("after a pause it said %q", got)
	}
	if err := freezeProcess(p); err != nil {
		t.Fatal(err)
	}
	d.kill()
}

func TestClaims(t *testing.T) {
	d, _ := newTestDaemon(t, "good")
	if d.claim() {
		t.Error("what does not run was claimed")
	}
	start(t, d)
	if !d.claim() || d.claim() {
		t.Error("one claim should hold, and keep others off")
	}
	d.release()
	if !d.claim() {
		t.Error("what was released cannot be claimed")
	}
}

func TestTheChildsEnvironment(t *testing.T) {
	t.Setenv("SMQ_MASTER", "elsewhere:7300")
	for _, v := range childEnvironment("/home") {
		if strings.HasPrefix(v, "SMQ_") {
			t.Errorf("a child is given %s", v)
		}
	}
}

func TestFreeAddressesDiffer(t *testing.T) {
	all, err := freeAddresses(3)
	if err != nil || len(all) != 3 || all[0] == all[1] || all[1] == all[2] || all[0] == all[2] {
		t.Errorf("%v, %v", all, err)
	}
}
