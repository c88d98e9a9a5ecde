package client

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
)

func TestPublishSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeCluster(t, 2, 4)
		defer f.close()
		c := f.connect()
		defer c.Close()
		p, err := c.NewPublisher(t.Context(), fakeTopic, PublisherOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			partition, offset, err := p.PublishSync(t.Context(), &Message{Value: fmt.Appendf(nil, "%d", i), Partition: 2})
			if err != nil || partition != 2 || offset != int64(i) {
				t.Fatalf("message %d: partition %d, offset %d, error %v", i, partition, offset, err)
			}
		}
		if err := p.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		if got := len(f.values(2)); got != 10 {
			t.Fatal(got)
		}
	})
}
