package broker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store/mem"
)

// What is held of a topic is not dropped because the store does not show the topic
// for a moment.
func TestATopicIsGoneAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := mem.New()
		key, err := record.ParseKeySource("key")
		if err != nil {
			t.Fatal(err)
		}
		c := catalog.Config{
			Topic: smq.Topic{Namespace: smq.DefaultNamespace, Name: "t"}, ID: "0123456789abcdef0123456789abcdef", Partitions: 1, Key: key,
		}
		followed := &topic{Config: c, st: st}
		want := func(gone bool) {
			t.Helper()
			if got := followed.isGone(t.Context()); got != gone {
				t.Errorf("gone: %v", got)
			}
		}
		want(false) // not found for the first time
		<-time.After(goneFor - 1)
		want(false)
		if err := catalog.Create(t.Context(), st, c); err != nil {
			t.Fatal(err)
		}
		want(false) // it is there
		e, err := catalog.Read(t.Context(), st, c.Topic)
		if err != nil {
			t.Fatal(err)
		}
		if err := catalog.Delete(t.Context(), st, e, 1); err != nil {
			t.Fatal(err)
		}
		want(false)
		<-time.After(goneFor)
		want(true)
	})
}
