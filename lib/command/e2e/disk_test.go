//go:build unix

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestFullDisk publishes until the store takes no more. The publisher says so in
// one line, what is acked is there, and once there is room everything goes on.
func TestFullDisk(t *testing.T) {
	disks := map[string]func(t *testing.T) (*cluster, func()){"limit": limitedFiles}
	if mount := smallMount(t); mount != nil {
		disks["tmpfs"] = func(t *testing.T) (*cluster, func()) { return onSmallDisk(t, mount) }
	}
	for name, disk := range disks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testFullDisk(t, disk)
		})
	}
}

func testFullDisk(t *testing.T, disk func(t *testing.T) (*cluster, func())) {
	c, makeRoom := disk(t)
	c.createTopic("t")
	c.say("t", 1)
	pub := c.publishFrom(2, "pub", "t", padded, "-K", ":", "--delivery-timeout", "6s")
	code := pub.exit()
	text := c.log("pub").String()
	if code != 3 && (code != 1 || pub.acked() > 0) {
		t.Errorf("smq-pub ended with exit code %d after %d acks", code, pub.acked())
	}
	if said(text) != 2 || !strings.Contains(text, "no space left") || !strings.Contains(text, "not acked") {
		t.Errorf("smq-pub says %q; an account and an error are due", text)
	}
	before := c.readStored("read-full", "t", pub)

	makeRoom()
	const more = 500
	c.publishSome("t", pub.sent()+2, more)
	// What was not acked may still have been on its way into the store.
	n := c.readStored("read-again", "t", pub)
	if stored := c.verifyClean("t"); n < before+more || stored < n {
		t.Errorf("%d messages were there, %d were published, %d were read, %d are stored", before, more, n, stored)
	}
	t.Logf("%d messages were acked before the disk was full, %d stored", pub.acked(), before)
}

// padded is a line of some size.
func padded(n int) string { return fmt.Sprintf("key-%d-%s:%d", n%5, padding, n) }

var padding = strings.Repeat("x", 4000)

// limitedFiles is a cluster whose broker may not write files beyond some size, a
// limit that no machine denies; for the broker it is as good as a full disk.
func limitedFiles(t *testing.T) (c *cluster, lift func()) {
	c = newCluster(t, dirStore(t), 0)
	free := c.newBroker("broker")
	limited := c.newBroker("broker-limited")
	limited.wrap = []string{"/bin/sh", "-c", `ulimit -f 400; exec "$0" "$@"`} // 200 KiB or 400 KiB
	c.brokers = []*daemon{limited}
	limited.start()
	return c, func() {
		c.brokers = []*daemon{free}
		limited.stop()
		free.start()
	}
}

// smallMount is the command line that runs a shell in which a small file system
// can be mounted; nil where there is none.
func smallMount(t *testing.T) []string {
	t.Helper()
	shell, err := exec.LookPath("sh")
	if err != nil {
		return nil
	}
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		return nil
	}
	for _, flags := range []string{"-rm", "-m"} {
		if exec.Command(unshare, flags, shell, "-c", "mount -t tmpfs -o size=1m none "+t.TempDir()).Run() == nil {
			return []string{unshare, flags, shell}
		}
	}
	return nil
}

// onSmallDisk is a cluster in one process, whose store is on a file system of a
// few megabytes that nobody else sees.
func onSmallDisk(t *testing.T, shell []string) (c *cluster, makeRoom func()) {
	disk := t.TempDir()
	c = &cluster{rig: newRig(t), store: "dir://" + disk + "/store"}
	script := fmt.Sprintf(`mount -t tmpfs -o size=16m none %[1]s && head -c 8000000 /dev/zero > %[1]s/ballast && exec "$@"`, disk)
	addrFile := filepath.Join(c.dir, "up.json")
	args := append(shell[1:], "-c", script, "sh",
		filepath.Join(bin, "smq-admin"), "up", "--listen", "127.0.0.1:0", "--store", c.store, "--data", c.dir, "--addr-file", addrFile)
	up := c.start("up", shell[0], stdio{}, args...)
	var addrs struct{ Master string }
	await(t, "the cluster is ready", func() error {
		if up.ended() {
			t.Fatalf("it has ended with exit code %d", up.exit())
		}
		content, err := os.ReadFile(addrFile)
		if err == nil {
			err = json.Unmarshal(content, &addrs)
		}
		return err
	})
	if _, _, err := net.SplitHostPort(addrs.Master); err != nil {
		t.Fatal(errors.Join(err, errors.New("the address file has no master")))
	}
	master := &daemon{process: up, r: c.rig, name: "up"}
	master.addrs.GRPC = addrs.Master
	c.masters = []*daemon{master}
	seen := fmt.Sprintf("/proc/%d/root%s", up.cmd.Process.Pid, disk)
	// Nobody else sees the file system, so what reads the store does it there.
	c.store = "dir://" + seen + "/store"
	return c, func() {
		if err := os.Remove(filepath.Join(seen, "ballast")); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFullDiskOfTheMaster keeps the master from writing more to its own data, as
// a full disk does. What goes on goes on, and once there is room everything else
// does too.
func TestFullDiskOfTheMaster(t *testing.T) {
	t.Parallel()
	c := &cluster{rig: newRig(t), store: newStore(t)}
	master := c.newMaster("master")
	// 32 KiB or 64 KiB: what its database begins with, or twice as much.
	master.wrap = []string{"/bin/sh", "-c", `ulimit -f 64; exec "$0" "$@"`}
	c.masters = []*daemon{master}
	master.start()
	first := c.newBroker("broker-1")
	c.brokers = []*daemon{first}
	first.start()
	c.createTopic("t")
	pub := c.publish("pub", "t", keyed, "-K", ":")
	pub.awaitMore(window)

	full := func() bool { return strings.Contains(c.log("master").String(), "file too large") }
	var late *daemon
	for i := 2; !full(); i++ { // every broker that joins is written down
		late = c.newBroker(fmt.Sprintf("broker-%d", i))
		c.brokers = append(c.brokers, late)
		late.begin()
		await(t, late.name+" is ready, or the disk full", func() error {
			if _, err := os.Stat(late.addrFile()); err != nil && !full() {
				return err
			}
			return nil
		})
	}
	first.awaitNotReady()
	pub.awaitMore(2 * window)
	wantFailure(t, c.admin("topic", "create", "later", "--timeout", "2s"), 5, "later")

	master.kill()
	master.wrap = nil
	master.start()
	late.awaitReady()
	c.createTopic("later")
	n := pub.finish(0)
	c.readAll("read", "t", n).checkAcks(pub.places())
	c.verify("t", n)
}
