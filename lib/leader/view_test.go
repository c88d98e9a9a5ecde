package leader

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
)

// What was given to a broker counts until its own averages show it.
func TestGiftsFade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var v view
		brokers := []layout.Broker{{ID: "a", Address: "a"}, {ID: "b", Address: "b"}}
		v.init(brokers)
		give := func(load float64) smq.BrokerID {
			owner, _, err := v.choose(wish{load: layout.Load{Bytes: load}}, 1)
			if err != nil {
				t.Fatal(err)
			}
			return owner.Broker
		}
		if owner := give(50e6); owner != "a" {
			t.Fatalf("the heavy one went to %s", owner)
		}
		for range 3 {
			if owner := give(1e3); owner != "b" {
				t.Errorf("a light one went to %s", owner)
			}
		}
		<-time.After(time.Second)
		v.set(brokers)
		if owner := give(0); owner != "b" {
			t.Errorf("a second later one went to %s", owner)
		}
		for range 120 {
			<-time.After(time.Second)
			v.set(brokers)
		}
		if owner := give(0); owner != "a" || len(v.given) != 1 {
			t.Errorf("much later one went to %s; %v is remembered", owner, v.given)
		}
	})
}
