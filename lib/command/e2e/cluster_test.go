//go:build unix

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// cluster is a cluster of real processes.
type cluster struct {
	*rig
	store   string // URL
	masters []*daemon
	brokers []*daemon
}

// daemon is a master or broker that may be ended and started again, with the
// addresses that it had.
type daemon struct {
	*process
	r      *rig
	name   string
	binary string
	args   []string // besides addresses
	wrap   []string // a command that runs the daemon; nil: it is run directly
	addrs  struct{ GRPC, HTTP string }
}

// newCluster starts a master and brokers over an empty store.
func newCluster(t testing.TB, store string, brokers int) *cluster {
	t.Helper()
	c := &cluster{rig: newRig(t), store: store}
	c.masters = []*daemon{c.newMaster("master-1")}
	c.masters[0].start()
	for i := range brokers {
		c.brokers = append(c.brokers, c.newBroker(fmt.Sprintf("broker-%d", i+1)))
		c.brokers[i].begin()
	}
	for _, b := range c.brokers {
		b.awaitReady()
	}
	return c
}

func (c *cluster) newMaster(name string, args ...string) *daemon {
	args = append(args, "--store", c.store, "--data", filepath.Join(c.dir, name))
	return &daemon{r: c.rig, name: name, binary: "smq-master", args: args}
}

// newBroker makes a broker that knows all masters, and has arguments of its own.
func (c *cluster) newBroker(name string, args ...string) *daemon {
	args = append([]string{"--master", c.masterList()}, args...)
	return &daemon{r: c.rig, name: name, binary: "smq-broker", args: args}
}

// masterList is the masters' addresses as --master takes them.
func (c *cluster) masterList() string {
	var all []string
	for _, m := range c.masters {
		all = append(all, m.addrs.GRPC)
	}
	return strings.Join(all, ",")
}

// addrFile is where the daemon says where it listens.
func (d *daemon) addrFile() string { return filepath.Join(d.r.dir, d.name+".json") }

// start starts the daemon and waits until it is ready.
func (d *daemon) start() {
	d.r.t.Helper()
	d.begin()
	d.awaitReady()
}

// begin starts the daemon, at its old addresses if it has any.
func (d *daemon) begin() {
	d.r.t.Helper()
	if err := os.Remove(d.addrFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		d.r.t.Fatal(err)
	}
	listen, http := "127.0.0.1:0", "127.0.0.1:0"
	if d.addrs.GRPC != "" {
		listen, http = d.addrs.GRPC, d.addrs.HTTP
	}
	args := append([]string{"--listen", listen, "--http", http, "--addr-file", d.addrFile()}, d.args...)
	binary := d.binary
	if d.wrap != nil {
		args = slices.Concat(d.wrap[1:], []string{filepath.Join(bin, d.binary)}, args)
		binary = d.wrap[0]
	}
	d.process = d.r.start(d.name, binary, stdio{}, args...)
}

// awaitReady waits until the daemon has written its address file.
func (d *daemon) awaitReady() {
	d.r.t.Helper()
	await(d.r.t, d.name+" is ready", func() error {
		if d.ended() {
			d.r.t.Fatalf("%s has ended with exit code %d", d.name, d.exit())
		}
		content, err := os.ReadFile(d.addrFile())
		if err == nil {
			err = json.Unmarshal(content, &d.addrs)
		}
		return err
	})
}

// awaitNotReady waits until the daemon says that it cannot do its part.
func (d *daemon) awaitNotReady() {
	d.r.t.Helper()
	await(d.r.t, d.name+" is not ready", func() error {
		if answer, err := fetch(d.r.t, "http://"+d.addrs.HTTP+"/readyz"); err == nil {
			return fmt.Errorf("it says %s", answer)
		}
		return nil
	})
}

// restart kills the daemon and starts it again.
func (d *daemon) restart() {
	d.r.t.Helper()
	d.kill()
	d.start()
}

// stop ends the daemon as an administrator would.
func (d *daemon) stop() {
	d.r.t.Helper()
	d.signal(syscall.SIGTERM)
	if code := d.exit(); code != 0 {
		d.r.t.Errorf("%s ended with exit code %d after SIGTERM", d.name, code)
	}
}

// at is the broker that listens at an address.
func (c *cluster) at(address string) *daemon {
	c.t.Helper()
	i := slices.IndexFunc(c.brokers, func(d *daemon) bool { return d.addrs.GRPC == address })
	if i < 0 {
		c.t.Fatalf("no broker listens at %q", address)
	}
	return c.brokers[i]
}

// admin runs smq-admin.
func (c *cluster) admin(args ...string) result {
	c.t.Helper()
	return c.run(stdio{}, "smq-admin", append(args, "--master", c.masterList())...)
}

// mustAdmin runs smq-admin, which must succeed.
func (c *cluster) mustAdmin(args ...string) result {
	c.t.Helper()
	got := c.admin(args...)
	if got.code != 0 {
		c.t.Fatalf("smq-admin %s: %v", strings.Join(args, " "), got)
	}
	return got
}

// ask runs a command of smq-admin that prints JSON, into v.
func (c *cluster) ask(v any, args ...string) error {
	c.t.Helper()
	got := c.admin(append(args, "-o", "json")...)
	if got.code != 0 {
		return fmt.Errorf("smq-admin %s: %v", strings.Join(args, " "), got)
	}
	return json.Unmarshal([]byte(got.stdout), v)
}

// createTopic makes a topic.
func (c *cluster) createTopic(name string, args ...string) {
	c.t.Helper()
	c.mustAdmin(append([]string{"topic", "create", name}, args...)...)
}

// segment is a live segment as smq-admin lists it.
type segment struct {
	Segment      uint64
	Lo, Hi       int32
	Owner        string
	OwnerAddress string `json:"owner_address"`
	State        string
}

// segments are the live segments of a topic.
func (c *cluster) segments(topic string) ([]segment, error) {
	c.t.Helper()
	var all []segment
	return all, c.ask(&all, "segment", "list", topic)
}

// ownerOf waits until the topic's first segment has an owner, and returns it.
func (c *cluster) ownerOf(topic string) (owner *daemon, id string) {
	c.t.Helper()
	return c.otherOwnerOf(topic, "")
}

// otherOwnerOf waits until the topic's first segment has an owner with another
// id than the given one.
func (c *cluster) otherOwnerOf(topic, not string) (owner *daemon, id string) {
	c.t.Helper()
	await(c.t, "topic "+topic+" has another owner than "+not, func() error {
		all, err := c.segments(topic)
		if err != nil {
			return err
		}
		if s := all[0]; s.Owner == not || s.Owner == "" {
			return fmt.Errorf("segment %d is %s, its owner %q", s.Segment, s.State, s.Owner)
		}
		owner, id = c.at(all[0].OwnerAddress), all[0].Owner
		return nil
	})
	return owner, id
}

// broker is a broker as smq-admin lists it.
type broker struct {
	ID, Address, State string
	Leader             bool
	Segments           uint64
}

// leader waits until a broker leads and returns it.
func (c *cluster) leader() *daemon {
	c.t.Helper()
	var leader *daemon
	await(c.t, "a broker leads", func() error {
		var all []broker
		if err := c.ask(&all, "broker", "list"); err != nil {
			return err
		}
		i := slices.IndexFunc(all, func(b broker) bool { return b.Leader && b.State == "ok" })
		if i < 0 {
			return fmt.Errorf("none of %v does", all)
		}
		leader = c.at(all[i].Address)
		return nil
	})
	return leader
}

// verify reads the topic's whole log in the store; it must be clean and have so
// many messages.
func (c *cluster) verify(topic string, messages int) {
	c.t.Helper()
	if found := c.verifyClean(topic); found != messages {
		c.t.Errorf("log verify %s: there are %d messages, not %d", topic, found, messages)
	}
}

// verifyClean reads the topic's whole log in the store, which must be clean, and
// returns how many messages there are.
func (c *cluster) verifyClean(topic string) (messages int) {
	c.t.Helper()
	var found struct {
		Messages int
		Problems []string
	}
	got := c.run(stdio{}, "smq-admin", "log", "verify", topic, "--store", c.store, "-o", "json")
	if err := json.Unmarshal([]byte(got.stdout), &found); err != nil || got.code != 0 || len(found.Problems) > 0 {
		c.t.Errorf("log verify %s: %v, %s", topic, got, got.stdout)
	}
	return found.Messages
}

// dirStore is the URL of an empty store in a directory, for the length of a
// test.
func dirStore(t testing.TB) string { return "dir://" + filepath.Join(t.TempDir(), "store") }

// freeAddresses are addresses on this machine that are free now.
func freeAddresses(t testing.TB, n int) []string {
	t.Helper()
	var all []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // not before all are found, so that they differ
		all = append(all, l.Addr().String())
	}
	return all
}
