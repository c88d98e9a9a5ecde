package tui

import (
	"testing"

	"github.com/seaweedmq/smq/lib/smqpb"
)

// A segment that nobody uses keeps the brokers that it was given; the console says
// which of them are not there any more.
func TestBrokersThatAreGoneAreMarked(t *testing.T) {
	c := atTopic(t, Options{})
	info := worldCluster()
	info.Brokers = info.Brokers[:3] // the fourth owns segment 9 and follows segment 6
	c.tell(&smqpb.WatchUpdate{TimeMs: worldMS, Cluster: info})
	c.wants("10.0.0.4:7310 (gone)", "10.0.0.3:7310 (draining)", "0/1")
	c.lacks("10.0.0.1:7310 (")
	c.press("enter") // segment 6
	c.wants("owner        10.0.0.1:7310 (b1c0ffee)", "followers    10.0.0.4:7310 (b4c0ffee, gone)")
	c.press("esc down down enter") // segment 9
	c.wants("owner        10.0.0.4:7310 (b4c0ffee, gone)")
}
