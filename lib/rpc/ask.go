package rpc

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// othersAfter is how long a master may take to answer before others are asked, too: a
// paused one, or one behind a broken network, takes in what it is asked and says
// nothing.
const othersAfter = 250 * time.Millisecond

// asking is one round of questions to the masters. It belongs to one goroutine.
type asking struct {
	c       *Cluster
	next    []string             // whom to ask yet
	asked   map[string]time.Time // when; zero: it has answered
	answers chan masterAnswer
	over    chan struct{} // closed: nobody takes answers any more
	failed  attempts
	second  *masterAnswer // of a master that does not lead
}

type masterAnswer struct {
	addr string
	info *smqpb.ClusterInfo
	err  error
}

// askMasters asks each master once, the preferred one first and the next one when
// that fails or takes long, and returns the best answer. The error names the
// addresses tried.
func (c *Cluster) askMasters(ctx context.Context) (*smqpb.ClusterInfo, error) {
	a := &asking{c: c, next: c.candidates(), asked: make(map[string]time.Time), answers: make(chan masterAnswer), over: make(chan struct{})}
	if len(a.next) == 0 {
		return nil, fmt.Errorf("%w list of masters: it is empty", smq.ErrInvalid)
	}
	ctx, cancel := context.WithCancel(ctx) // nobody waits for those that are late
	defer cancel()
	defer close(a.over)
	best := a.run(ctx)
	if best == nil {
		return nil, a.failed
	}
	c.preferMaster(best.addr)
	return best.info, nil
}

// run returns the best answer; nil when all have failed.
func (a *asking) run(ctx context.Context) *masterAnswer {
	late := time.NewTimer(othersAfter)
	defer late.Stop()
	a.askNext(ctx)
	for {
		select {
		case <-late.C:
			if a.second != nil {
				return a.second
			}
			a.askNext(ctx)
			late.Reset(othersAfter)
			continue
		case answer := <-a.answers:
			a.asked[answer.addr] = time.Time{}
			if a.take(answer) {
				return &answer
			}
		}
		if a.second != nil {
			wait := a.askLeading(ctx)
			if wait <= 0 {
				return a.second
			}
			late.Reset(wait)
			continue
		}
		a.askNext(ctx)
		if !a.waiting() {
			return nil
		}
		late.Reset(othersAfter)
	}
}

// askNext asks the next master that there is to ask.
func (a *asking) askNext(ctx context.Context) {
	if len(a.next) > 0 {
		a.ask(ctx, a.next[0])
	}
}

// askLeading asks the master that leads as another one says, unless it has been asked,
// and returns how long it has got to answer yet; none if it has failed.
func (a *asking) askLeading(ctx context.Context) time.Duration {
	leading := a.second.info.GetLeadingMaster()
	if _, asked := a.asked[leading]; !asked {
		a.ask(ctx, leading)
	}
	return othersAfter - time.Since(a.asked[leading])
}

// ask asks a master.
func (a *asking) ask(ctx context.Context, addr string) {
	a.asked[addr] = time.Now()
	a.next = slices.DeleteFunc(a.next, func(other string) bool { return other == addr })
	go func() {
		info, err := a.c.askMaster(ctx, addr)
		select {
		case a.answers <- masterAnswer{addr, info, err}:
		case <-a.over:
		}
	}()
}

// take takes in an answer and reports whether no better one can come. The leading
// master knows better than a follower, whose answer is good enough if that one cannot be
// reached.
func (a *asking) take(answer masterAnswer) (best bool) {
	if answer.err != nil {
		a.failed = append(a.failed, answer.err)
		return false
	}
	a.c.learn(answer.info)
	if leading := answer.info.GetLeadingMaster(); leading == "" || leading == answer.addr {
		return true
	}
	a.second = &answer
	return false
}

// waiting reports whether an answer is still to come.
func (a *asking) waiting() bool {
	for _, since := range a.asked {
		if !since.IsZero() {
			return true
		}
	}
	return false
}
