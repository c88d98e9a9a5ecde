package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seaweedmq/smq/lib/background"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

const (
	// leaderTimeout bounds how long a leader is asked that does not answer, or
	// refuses: another may take its place, and then that one is asked.
	leaderTimeout = 2 * probeTimeout
	leaderPause   = 300 * time.Millisecond // between two tries
)

// askLeader has the broker that leads by the masters' word list all topics, and
// looks at their pasts. When that fails the masters are asked again who leads, so
// that what x says of the leader is of the broker that x.info names.
func (x *examination) askLeader(ctx context.Context, conns *rpc.Conns) {
	if x.info.GetLeader().GetBroker() == "" {
		return
	}
	limited, cancel := context.WithTimeout(ctx, leaderTimeout)
	defer cancel()
	for {
		err := x.askTopics(limited, conns)
		if err == nil {
			x.leader = nil
			x.askPast(ctx, conns)
			return
		}
		if x.leader == nil || limited.Err() == nil { // else it says only that the time is over
			x.leader = err
		}
		if !passes(err) || background.Wait(limited, leaderPause) != nil {
			return
		}
		info, err := askMaster(limited, conns, x.info.GetLeadingMaster())
		if now := info.GetLeader(); err == nil && now.GetBroker() != "" {
			if now.GetBroker() != x.info.GetLeader().GetBroker() {
				x.leader = nil // was another's
			}
			x.info.Leader = now
		}
	}
}

// passes reports whether another leader, or the same one later, may do better.
func passes(err error) bool { return errors.Is(err, smq.ErrNotLeader) || isAbsent(err) }

// isAbsent reports whether an error is that of a broker that does not answer.
func isAbsent(err error) bool {
	return errors.Is(err, smq.ErrUnavailable) || errors.Is(err, smq.ErrTimeout) || errors.Is(err, smq.ErrDraining)
}

// leaderClient is of the broker that leads by x.info.
func (x *examination) leaderClient(conns *rpc.Conns) (smqpb.LeaderClient, error) {
	conn, err := conns.Get(x.info.GetLeader().GetAddress())
	if err != nil {
		return nil, err
	}
	return smqpb.NewLeaderClient(conn), nil
}

// askTopics has the leading broker list all topics.
func (x *examination) askTopics(ctx context.Context, conns *rpc.Conns) error {
	l, err := x.leaderClient(conns)
	if err != nil {
		return err
	}
	x.topics = nil
	req := &smqpb.ListTopicsRequest{}
	for {
		resp, err := askPage(ctx, l, req)
		if err != nil {
			return err
		}
		for _, t := range resp.GetTopics() {
			req.After = t.GetConfig().GetTopic()
			if t.GetError() != nil {
				x.damaged[req.After] = t.GetError().GetMessage()
			}
		}
		x.topics = append(x.topics, resp.GetTopics()...)
		if !resp.GetMore() || len(resp.GetTopics()) == 0 {
			return nil
		}
	}
}

func askPage(ctx context.Context, l smqpb.LeaderClient, req *smqpb.ListTopicsRequest) (*smqpb.ListTopicsResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return l.ListTopics(ctx, req)
}

func (x examination) judgeLeader() finding {
	const check = "leader"
	leader := x.info.GetLeader()
	name := fmt.Sprintf("%s at %s", leader.GetBroker(), leader.GetAddress())
	// What kept the same process from answering as a broker, or from being ready.
	absent, unready := x.brokers[leader.GetAddress()], x.ready[leader.GetAddress()]
	advice := "see its log"
	if x.info.GetLeadingMaster() == "" {
		advice = "see to the masters first" // without them no lease is renewed
	}
	switch {
	case leader.GetBroker() == "":
		return finding{check, bad, "no broker leads, so topics cannot be made and segments not moved", "one is named as soon as a broker has joined"}
	case errors.Is(x.leader, smq.ErrNotLeader):
		// It has refused for as long as it was asked: masters that knew of
		// another leader would have said so.
		return finding{check, bad, fmt.Sprintf("broker %s leads by the masters' word, and refuses to: another leader writes to the store %s", name, x.info.GetStore()),
			"another cluster uses the store: stop its masters and brokers, or these"}
	case x.leader != nil && isAbsent(x.leader):
		return finding{check, bad, fmt.Sprintf("the leading broker, %s, does not answer: %v", name, x.leader), unanswered(x.leader, notReached)}
	case x.leader != nil:
		return finding{check, bad, fmt.Sprintf("the leading broker, %s, cannot list the topics: %v", name, x.leader), "see whether it reaches the store " + x.info.GetStore()}
	case absent != nil:
		return finding{check, bad, fmt.Sprintf("the leading broker, %s, does not always answer: %v", name, absent), unanswered(absent, notReached)}
	case unready != nil:
		return finding{check, bad, fmt.Sprintf("the leading broker, %s, reads the store, but is not ready: %v", name, unready), advice}
	case x.info.GetLeadingMaster() == "":
		return finding{check, note, fmt.Sprintf("broker %s led when last there was a majority of the masters; it answers and reads the store", name), advice}
	}
	return finding{check, ok, fmt.Sprintf("broker %s leads, in term %d, and reads the store", name, leader.GetTerm()), ""}
}
