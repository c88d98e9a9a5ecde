package seaweed

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	pb "github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"

	"github.com/seaweedmq/smq/lib/smq"
)

// TestWatchSilence lets a filer send signs of life, then nothing: not even the
// end of the connection.
func TestWatchSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		started, left := time.Now(), 5
		recv := func() (*pb.SubscribeMetadataResponse, error) {
			if left == 0 {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			left--
			time.Sleep(5 * time.Second) // of the bubble's clock
			return &pb.SubscribeMetadataResponse{TsNs: 1}, nil
		}
		err := follow(ctx, cancel, recv, func(*pb.SubscribeMetadataResponse) {})
		if !errors.Is(err, errSilent) || !errors.Is(err, smq.ErrUnavailable) {
			t.Errorf("follow = %v, want %v", err, errSilent)
		}
		if got, want := time.Since(started), 5*5*time.Second+watchSilence; got != want {
			t.Errorf("it broke after %v, want %v", got, want)
		}
	})
}

// TestWatchOfOlderFiler has a filer that sends no signs of life: it may be
// silent for as long as nothing changes.
func TestWatchOfOlderFiler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		events := 3
		recv := func() (*pb.SubscribeMetadataResponse, error) {
			time.Sleep(time.Hour) // of the bubble's clock
			if events == 0 || ctx.Err() != nil {
				return nil, errors.New("connection reset")
			}
			events--
			return &pb.SubscribeMetadataResponse{EventNotification: &pb.EventNotification{}}, nil
		}
		err := follow(ctx, cancel, recv, func(*pb.SubscribeMetadataResponse) {})
		if errors.Is(err, errSilent) || !errors.Is(err, smq.ErrUnavailable) || events != 0 {
			t.Errorf("follow = %v with %d events to come", err, events)
		}
	})
}

func TestChangedFiles(t *testing.T) {
	c := config{folder: "/smq/store"}
	file := func(name string) *pb.Entry { return &pb.Entry{Name: name} }
	event := func(folder string, before, after *pb.Entry, newFolder string) *pb.SubscribeMetadataResponse {
		return &pb.SubscribeMetadataResponse{
			Directory:         folder,
			EventNotification: &pb.EventNotification{OldEntry: before, NewEntry: after, NewParentPath: newFolder},
		}
	}
	for name, test := range map[string]struct {
		dir   string
		event *pb.SubscribeMetadataResponse
		want  []string
	}{
		"created":          {"/d", event("/smq/store/d/e", nil, file("f"), "/smq/store/d/e"), []string{"/d/e/f"}},
		"created, no path": {"/d", event("/smq/store/d/e", nil, file("f"), ""), []string{"/d/e/f"}},
		"replaced":         {"/d", event("/smq/store/d", file("f"), file("f"), "/smq/store/d"), []string{"/d/f"}},
		"removed":          {"/d", event("/smq/store/d", file("f"), nil, ""), []string{"/d/f"}},
		"renamed":          {"/", event("/smq/store/d", file("f"), file("g"), "/smq/store/e"), []string{"/d/f", "/e/g"}},
		"moved in":         {"/e", event("/smq/store/d", file("f"), file("g"), "/smq/store/e"), []string{"/e/g"}},
		"at the root":      {"/", event("/smq/store", nil, file("f"), "/smq/store"), []string{"/f"}},
		"a neighbour":      {"/d", event("/smq/store/dd", nil, file("f"), "/smq/store/dd"), nil},
		"the folder":       {"/d", event("/smq/store", nil, &pb.Entry{Name: "d", IsDirectory: true}, "/smq/store"), nil},
		"another store":    {"/", event("/smq/store2", nil, file("f"), "/smq/store2"), nil},
		"a dot":            {"/", event("/smq/store/.x", nil, file("f"), "/smq/store/.x"), nil},
		"a sign of life":   {"/", &pb.SubscribeMetadataResponse{TsNs: 7}, nil},
	} {
		if got := c.changedFiles(test.dir, test.event); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
