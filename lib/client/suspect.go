package client

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// An owner that is paused or cut off says nothing, and its connections stay open
// for three seconds. Long before that its followers may have sealed its segments,
// and others own what follows. So whoever has a stream to an owner that is quiet
// (rpc.Conns.OnQuiet: slow answers do not make it so) asks the leading broker to
// say when the layout moves on. That is one question for each publisher and
// subscriber, however many segments and messages are concerned, and a few more if
// segments get their successors one by one; and nothing is done to the owner before
// there is one, so that a wrong suspicion costs the question and nothing else.

// suspect watches the layout for a while because an owner is quiet.
func (r *router) suspect(addr string) {
	if !r.serves(addr) {
		return
	}
	if r.suspects == nil {
		r.suspects = make(map[string]time.Duration)
	}
	r.suspects[addr] = r.now()
	if !r.watching {
		r.watching = true
		r.spawn(r.watch)
	}
}

// watch is the goroutine that watches the layout. The leading broker answers when
// the layout moves on, or when it has not for some time: then the owners that were
// quiet when it was asked are left to their connections' end.
func (r *router) watch(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.watching = false }()
	for wait := minBackoff; ctx.Err() == nil && r.suspecting(); wait = min(2*wait, maxBackoff) {
		asked, known := r.now(), r.version
		req := &smqpb.LookupRequest{Topic: r.topic.GetTopic(), TopicId: r.topic.GetTopicId(), NewerThan: known}
		r.mu.Unlock()
		resp, err := r.askOnce(ctx, req)
		r.mu.Lock()
		r.learn(resp, err)
		if r.version == known {
			maps.DeleteFunc(r.suspects, func(_ string, since time.Duration) bool { return since <= asked })
		}
		if r.suspecting() {
			r.mu.Unlock()
			_ = sleep(ctx, wait) // the loop looks at ctx
			r.mu.Lock()
		}
	}
}

// suspecting reports whether there is a suspect that owns segments, and has not
// been one for so long that its connection is closed.
func (r *router) suspecting() bool {
	maps.DeleteFunc(r.suspects, func(addr string, since time.Duration) bool {
		return r.now()-since >= lookupTimeout || !r.serves(addr)
	})
	return len(r.suspects) > 0
}

// errQuiet is why a call to a broker is given up that is quiet.
var errQuiet = fmt.Errorf("%w: it gives no sign of life", smq.ErrUnavailable)
