package broker

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"testing"
	"time"

	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// A leader that has lost touch with the masters goes on telling who owns what,
// and changes nothing that concerns all.
func TestTopicsStayWithoutTheMasters(t *testing.T) {
	m, now := newTestMember()
	r := &role{b: m.b, address: "other:7310"}
	service := leaderService{role: r}
	create := func() error {
		_, err := service.CreateTopic(t.Context(), &smqpb.CreateTopicRequest{})
		return err
	}
	if err := create(); !errors.Is(err, smq.ErrNotLeader) {
		t.Errorf("create without leading: %v", err)
	}
	r.reign = &reign{Leading: willing{}, term: 1}
	var sent sendTimes
	sent.note(1, *now)
	m.take(&smqpb.Grant{Sequence: 1, LeaseMs: 2000}, &sent)
	if err := create(); err != nil {
		t.Errorf("create under a lease: %v", err)
	}
	*now = 2 * time.Second
	if err := create(); !errors.Is(err, smq.ErrUnavailable) {
		t.Errorf("create without a lease: %v", err)
	}
	if _, err := service.DeleteTopic(t.Context(), &smqpb.DeleteTopicRequest{}); !errors.Is(err, smq.ErrUnavailable) {
		t.Errorf("delete without a lease: %v", err)
	}
	if _, err := service.Lookup(t.Context(), &smqpb.LookupRequest{}); err != nil {
		t.Errorf("look up without a lease: %v", err)
	}
}

// A leader does not take its own segments away from itself because its connection
// to the masters broke.
func TestALeaderIsAlive(t *testing.T) {
	m, _ := newTestMember()
	b := m.b
	b.log, b.metrics = slog.New(slog.DiscardHandler), newMetrics(nil, m.leased)
	told := make(chan []layout.Broker, 1)
	b.cfg.Lead = func(o LeadOptions) Leading {
		told <- o.Brokers
		return willing{told: told}
	}
	r := &role{b: b}
	for range 2 { // as the leader begins, and later
		r.lead("self", 1, []layout.Broker{{ID: "other", Dead: true}, {ID: "self", Dead: true, Draining: true}})
		got := <-told
		if !got[0].Dead || got[1].Dead || !got[1].Draining {
			t.Errorf("the leader is told %+v", got)
		}
	}
}

// A leader that drains gives itself nothing from then on, though the masters have
// not heard of it.
func TestALeaderKnowsThatItDrains(t *testing.T) {
	m, _ := newTestMember()
	b := m.b
	b.role = &role{b: b}
	b.role.drain() // not leading: nobody is to be told
	told := make(chan []layout.Broker, 1)
	b.role.reign = &reign{Leading: willing{told: told}, term: 1}
	m.brokers = []layout.Broker{{ID: "other"}, {ID: m.id}}
	b.draining.Store(true)
	begin := func() { b.role.drain() }
	later := func() { b.role.lead(m.id, 1, m.brokers) } // as the masters tell of something else
	for _, tell := range []func(){begin, later} {
		tell()
		if got := <-told; got[0].Draining || !got[1].Draining {
			t.Errorf("the leader is told %+v", got)
		}
	}
}

// willing leads, and does whatever it is asked for.
type willing struct {
	Leading
	told chan<- []layout.Broker
}

func (w willing) SetBrokers(brokers []layout.Broker) { w.told <- brokers }

func (willing) CreateTopic(context.Context, *smqpb.CreateTopicRequest) (*smqpb.CreateTopicResponse, error) {
	return nil, nil
}

func (willing) DeleteTopic(context.Context, *smqpb.DeleteTopicRequest) (*smqpb.DeleteTopicResponse, error) {
	return nil, nil
}

func (willing) Lookup(context.Context, *smqpb.LookupRequest) (*smqpb.LookupResponse, error) {
	return nil, nil
}

// Each question for the leader gets to it, or to the one who asks whoever leads.
func TestNobodyLeads(t *testing.T) {
	m, _ := newTestMember()
	service := reflect.ValueOf(leaderService{role: &role{b: m.b, address: "other:7310"}})
	for i := range service.NumMethod() {
		method := service.Type().Method(i)
		if !method.IsExported() {
			continue
		}
		args := []reflect.Value{reflect.ValueOf(t.Context())}
		if method.Name == "Watch" {
			args = nil
		}
		for n := len(args) + 1; n < method.Type.NumIn(); n++ {
			args = append(args, reflect.Zero(method.Type.In(n)))
		}
		out := service.Method(i).Call(args)
		if err, _ := out[len(out)-1].Interface().(error); !errors.Is(err, smq.ErrNotLeader) {
			t.Errorf("%s: %v", method.Name, err)
		}
	}
}
