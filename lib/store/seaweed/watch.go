package seaweed

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	pb "github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"

	"github.com/seaweedmq/smq/lib/smq"
)

const (
	// watchSlack is how far apart the clocks of several filers may be; what
	// happened within it is reported again.
	watchSlack = 5 * time.Second
	// watchSilence is how long a filer that sends signs of life, one every 5 s,
	// may be silent.
	watchSilence = 30 * time.Second
)

var errSilent = fmt.Errorf("%w: the filer has fallen silent", smq.ErrUnavailable)

// Watch calls changed for each file below dir that changes. It follows the
// filer's log of changes, which keeps what was logged before a reader came, from
// the filer's present on: so nothing is missed once that is known.
func (s *Store) Watch(ctx context.Context, dir string, ready func(), changed func(path string)) error {
	if err := checkArgs(ctx, checkDir(dir)); err != nil {
		return err
	}
	err := s.watch(ctx, dir, ready, changed)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return wrap(err, "watch %s", dir)
}

func (s *Store) watch(ctx context.Context, dir string, ready func(), changed func(path string)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stream, err := s.subscribe(ctx, dir)
	if err != nil {
		return err
	}
	ready()
	silence := time.AfterFunc(watchSilence, func() { cancel(errSilent) })
	defer silence.Stop()
	silence.Stop() // until the first sign of life: older filers send none
	for {
		resp, err := stream.Recv()
		if err != nil {
			return watchError(ctx, err)
		}
		if resp.GetEventNotification() == nil || silence.Stop() {
			silence.Reset(watchSilence)
		}
		s.report(dir, resp, changed)
		for _, e := range resp.GetEvents() {
			s.report(dir, e, changed)
		}
	}
}

// watchError says why a watch broke.
func watchError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, errSilent) {
		return cause
	}
	return fmt.Errorf("%w: the watch broke: %s", smq.ErrUnavailable, text(err))
}

// subscribe opens the log of changes at the filer's present.
func (s *Store) subscribe(ctx context.Context, dir string) (stream pb.SeaweedFiler_SubscribeMetadataClient, err error) {
	req := &pb.SubscribeMetadataRequest{
		ClientName:                  "smq",
		ClientId:                    rand.Int32(),
		ClientEpoch:                 1,
		PathPrefix:                  s.config.within(dir) + "/",
		ClientSupportsBatching:      true,
		ClientSupportsIdleHeartbeat: true,
	}
	a := s.filers.try(ctx, func(a attempt) bool { return transient(a.err) }, func(_ context.Context, client filerClient) error {
		short, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		present, err := client.Ping(short, &pb.PingRequest{})
		if err != nil {
			return err
		}
		req.SinceNs = present.GetStartTimeNs()
		if len(s.filers.all) > 1 {
			req.SinceNs -= int64(watchSlack)
		}
		stream, err = client.SubscribeMetadata(ctx, req)
		return err
	})
	return stream, readError(ctx, a)
}

// report calls changed with the file that an event is about.
func (s *Store) report(dir string, event *pb.SubscribeMetadataResponse, changed func(path string)) {
	n := event.GetEventNotification()
	before, after := "", ""
	if e := n.GetOldEntry(); e != nil && !e.GetIsDirectory() {
		before = event.GetDirectory() + "/" + e.GetName()
	}
	if e := n.GetNewEntry(); e != nil && !e.GetIsDirectory() {
		parent := n.GetNewParentPath()
		if parent == "" {
			parent = event.GetDirectory()
		}
		after = parent + "/" + e.GetName()
	}
	if before == after {
		before = ""
	}
	for _, full := range []string{before, after} {
		if path, ok := s.config.below(dir, full); ok {
			changed(path)
		}
	}
}

// below is the store's path of a filer's path, if it is one below dir.
func (c config) below(dir, full string) (path string, ok bool) {
	if !strings.HasPrefix(full, c.within(dir)+"/") {
		return "", false
	}
	path = full[len(c.folder):]
	return path, checkPath(path) == nil
}
