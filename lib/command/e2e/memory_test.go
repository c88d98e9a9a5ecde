//go:build unix && weed

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/store/seaweed/weedtest"
)

// storePause is how long the store stands still. It is the subject of the test,
// not a wait for something.
const storePause = 30 * time.Second

// TestStoreStandsStill freezes the store under full load. The broker's memory
// stays below twice its bound, publishers who cannot wait are told so, and when
// the store goes on, everything does, with nothing lost.
func TestStoreStandsStill(t *testing.T) {
	t.Parallel()
	sizes := []int{128}
	if scaled(t, 1) > 1 {
		sizes = append(sizes, 256)
	}
	for _, mib := range sizes {
		t.Run(fmt.Sprintf("memory=%dMiB", mib), func(t *testing.T) { testStoreStandsStill(t, mib) })
	}
}

func testStoreStandsStill(t *testing.T, mib int) {
	server := weedtest.Start(t)
	c := newCluster(t, "seaweedfs://"+server.Filer()+"/smq", 0)
	b := c.newBroker("broker", "--memory", fmt.Sprintf("%dMiB", mib))
	c.brokers = []*daemon{b}
	b.start()
	c.createTopic("t")
	var pubs []*publisher
	for i := range 4 {
		topic := fmt.Sprintf("t-%d", i)
		c.createTopic(topic)
		p := c.publish("pub-"+topic, topic, padded, "-K", ":", "--spread")
		pubs = append(pubs, p)
	}
	for _, p := range pubs {
		p.setWindow(50_000) // more than fits into the broker
		p.awaitMore(window)
	}

	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	goOn := time.After(storePause)
	in := strings.NewReader("said:1\n")
	hasty := c.run(stdio{in: in}, "smq-pub", "t", "-K", ":", "--timeout", "5s", "--delivery-timeout", "5s", "--master", c.masterList())
	if hasty.code != 5 || said(hasty.stderr) > 2 {
		t.Errorf("a publisher that waits 5 s: %v", hasty)
	}
	<-goOn
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	for _, p := range pubs {
		p.awaitMore(window)
		p.setWindow(window)
	}
	_, peak, err := memoryOf(b.cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	var published []int
	for _, p := range pubs {
		published = append(published, p.finish(0))
	}
	for i, n := range published {
		topic := fmt.Sprintf("t-%d", i)
		c.readAll("read-"+topic, topic, n).checkAcks(pubs[i].places())
		c.verify(topic, n)
	}
	_, later, err := memoryOf(b.cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("memory at most %d MiB, %d MiB after reading; the bound is %d MiB", peak>>20, later>>20, mib)
	if max(peak, later) >= int64(2*mib)<<20 && !raced() {
		t.Errorf("the broker has taken %d MiB, and later %d MiB, of memory, its bound is %d MiB", peak>>20, later>>20, mib)
	}
}
