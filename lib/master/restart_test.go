package master

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
)

func TestRestartKeepsTheRegistry(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		dir := t.TempDir()
		inDir := func(c *Config) { c.DataDir = dir }
		n := solo(w, inDir)
		a, b := w.join(n, "a"), w.join(n, "b")
		a.live()
		b.live()
		pass(10 * time.Second)
		before := n.Info()
		n.kill()

		n = solo(w, func(c *Config) { c.DataDir, c.StoreURL, c.Advertise = dir, "", "elsewhere:1" })
		after := n.Info()
		if after.GetClusterId() != before.GetClusterId() || after.GetStore() != before.GetStore() || after.GetLeader().GetTerm() != 1 || n.leads() != "a" {
			t.Errorf("after the restart %v, before %v", after, before)
		}
		again := w.dial("elsewhere:1", "b", b.join)
		if g := again.granted(); g.GetJoin() != b.join {
			t.Errorf("grant %v", g)
		}
		again.live()
		pass(3*time.Second + 2*tick)
		if n.seen("a") != nil || n.leads() != "b" {
			t.Errorf("a lease later %v", n.Info())
		}
		if err := w.dial("elsewhere:1", "a", a.join).ended(); !errors.Is(err, smq.ErrConflict) {
			t.Errorf("the expired broker came back: %v", err)
		}
	})
}

func TestRestartFromASnapshot(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		dir := t.TempDir()
		n := solo(w, func(c *Config) { c.DataDir = dir })
		a := w.join(n, "a")
		if err := n.raft.Snapshot().Error(); err != nil {
			t.Fatal(err)
		}
		n.kill()
		solo(w, func(c *Config) { c.DataDir = dir })
		if g := w.dial("m:1", "a", a.join).granted(); g.GetJoin() != a.join || g.GetLeader().GetTerm() != 1 {
			t.Errorf("grant %v", g)
		}
	})
}

// A registry that was in memory is lost with its process; the brokers that live
// on register with the new one under their old ids.
func TestBrokersOutliveALostRegistry(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := solo(w, nil)
		w.join(n, "first")
		a := w.join(n, "a")
		pass(time.Second)
		n.kill()
		n = solo(w, nil)
		w.join(n, "fresh")
		again := w.dial("m:1", "a", a.join)
		again.granted()
		if n.leads() != "fresh" || n.seen("a") == nil {
			t.Errorf("the cluster is %v", n.Info())
		}
	})
}

func TestClusterIDIsTakenFromTheConfiguration(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := solo(w, func(c *Config) { c.ClusterID = "given" })
		if id := n.Info().GetClusterId(); id != "given" {
			t.Errorf("it is %q", id)
		}
	})
}

func TestAnotherStoreStopsTheMaster(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		dir := t.TempDir()
		solo(w, func(c *Config) { c.DataDir = dir }).kill()
		n := w.start("m", func(c *Config) { c.DataDir, c.StoreURL = dir, "dir:///other" })
		<-n.Done()
		if err := n.Err(); !errors.Is(err, smq.ErrConflict) || !strings.Contains(err.Error(), "mem://") {
			t.Errorf("it stopped with %v", err)
		}
	})
}

func TestNewClusterNeedsAStore(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.start("m", func(c *Config) { c.StoreURL = "" })
		<-n.Done()
		if err := n.Err(); !errors.Is(err, smq.ErrInvalid) {
			t.Errorf("it stopped with %v", err)
		}
	})
}

func TestDataDirectoryInUse(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		dir := t.TempDir()
		solo(w, func(c *Config) { c.DataDir = dir })
		_, err := Start(Config{Advertise: "other:1", StoreURL: "mem://", DataDir: dir})
		if !errors.Is(err, smq.ErrConflict) || !strings.Contains(err.Error(), dir) {
			t.Errorf("got %v", err)
		}
	})
}

func TestDataDirectoryOfAnotherGroup(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		dir := t.TempDir()
		solo(w, func(c *Config) { c.DataDir = dir }).kill()
		_, err := Start(Config{
			Advertise: "m1:1", StoreURL: "mem://", DataDir: dir,
			Peers: []string{"m1:2", "m2:2", "m3:2"}, RaftAdvertise: "m1:2", RaftListener: w.net.listen("m1:2"),
		})
		if !errors.Is(err, smq.ErrInvalid) || !strings.Contains(err.Error(), "m1:2") {
			t.Errorf("got %v", err)
		}
		w.net.listen("m1:2") // the listener of the failed start is closed: its address is free
	})
}

func TestConfigurationIsChecked(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	peers := []string{"a:1", "b:1", "c:1"}
	for name, c := range map[string]Config{
		"no address":      {},
		"no port":         {Advertise: "host"},
		"not among peers": {Advertise: "a:2", Peers: peers, RaftAdvertise: "d:1", RaftListener: listener, DataDir: "x"},
		"twice":           {Advertise: "a:2", Peers: []string{"a:1", "a:1"}, RaftAdvertise: "a:1", RaftListener: listener, DataDir: "x"},
		"peer's port":     {Advertise: "a:2", Peers: []string{"a:1", "b"}, RaftAdvertise: "a:1", RaftListener: listener, DataDir: "x"},
		"no listener":     {Advertise: "a:2", Peers: peers, RaftAdvertise: "a:1", DataDir: "x"},
		"no directory":    {Advertise: "a:2", Peers: peers, RaftAdvertise: "a:1", RaftListener: listener},
	} {
		if _, err := Start(c); !errors.Is(err, smq.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Layouts in the store name terms of a registry that is lost; a leader with an
// earlier term would not believe that it leads.
func TestTermsOfAnAdoptedStoreGoOn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := solo(w, nil)
		w.join(n, "a")
		n.kill()
		for range 2 {
			before := n.Info().GetLeader().GetTerm()
			n = solo(w, func(c *Config) { c.Adopted = true })
			w.join(n, "a")
			if term := n.Info().GetLeader().GetTerm(); term <= before+1000 {
				t.Errorf("term %d after term %d", term, before)
			}
			pass(2 * time.Second)
			n.kill()
		}
	})
}
