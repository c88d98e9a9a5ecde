package seaweed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
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
	return follow(ctx, cancel, stream.Recv, func(event *pb.SubscribeMetadataResponse) {
		for _, path := range s.config.changedFiles(dir, event) {
			changed(path)
		}
	})
}

// follow passes on the events that recv returns, until it fails. It cancels
// recv's context when the filer falls silent.
func follow(ctx context.Context, cancel context.CancelCauseFunc, recv func() (*pb.SubscribeMetadataResponse, error), changed func(*pb.SubscribeMetadataResponse)) error {
	var silence *time.Timer // from the first sign of life on: older filers send none
	for {
		resp, err := recv()
		if err != nil {
			return watchError(ctx, err)
		}
		switch {
		case silence != nil:
			silence.Reset(watchSilence)
		case resp.GetEventNotification() == nil:
			silence = time.AfterFunc(watchSilence, func() { cancel(errSilent) })
			defer silence.Stop()
		}
		changed(resp)
		for _, e := range resp.GetEvents() {
			changed(e)
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

// changedFiles are the paths of the files below dir that an event is about.
func (c config) changedFiles(dir string, event *pb.SubscribeMetadataResponse) (paths []string) {
	add := func(folder string, e *pb.Entry) {
		if e == nil || e.GetIsDirectory() {
			return
		}
		if p, ok := c.below(dir, folder+"/"+e.GetName()); ok && !slices.Contains(paths, p) {
			paths = append(paths, p)
		}
	}
	n := event.GetEventNotification()
	add(event.GetDirectory(), n.GetOldEntry())
	add(cmp.Or(n.GetNewParentPath(), event.GetDirectory()), n.GetNewEntry())
	return paths
}

// below is the store's path of a filer's path, if it is one below dir.
func (c config) below(dir, full string) (path string, ok bool) {
	if !strings.HasPrefix(full, c.within(dir)+"/") {
		return "", false
	}
	path = full[len(c.folder):]
	return path, checkPath(path) == nil
}
