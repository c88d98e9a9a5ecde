package tui

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seaweedmq/smq/lib/smqpb"
)

// maxEvents bounds the events that are kept.
const maxEvents = 5000

// state is the cluster as the watches tell it. Protobuf messages in it are never
// changed, only replaced.
type state struct {
	complete bool // a snapshot has been whole
	cluster  *smqpb.ClusterInfo
	topics   map[string]*topicRow
	brokers  map[string]*history // bytes/s, by id
	events   []*smqpb.LayoutEvent
	dropped  int   // events that were there before the first one
	timeMS   int64 // the leader's clock
	detail   *detail

	// version rises with every change of what topics there are or what is known
	// of them, so that views know when to sort them anew.
	version int
}

// topicRow is a topic in one line, and its traffic lately.
type topicRow struct {
	*smqpb.TopicStatus
	lower string // its name, to look for
	rates history
	seen  bool // in the present snapshot
}

func newState() *state {
	return &state{topics: make(map[string]*topicRow), brokers: make(map[string]*history)}
}

// frozen is a copy that further updates do not change.
func (s *state) frozen() *state {
	c := *s
	c.topics = make(map[string]*topicRow, len(s.topics))
	for name, row := range s.topics {
		same := *row
		same.rates = row.rates.copied()
		c.topics[name] = &same
	}
	c.brokers = make(map[string]*history, len(s.brokers))
	for id, h := range s.brokers {
		same := h.copied()
		c.brokers[id] = &same
	}
	c.events = slices.Clone(s.events)
	c.detail = s.detail.frozen()
	return &c
}

// apply takes an update of the cluster.
func (s *state) apply(u *smqpb.WatchUpdate) {
	if u.GetReset_() {
		for _, row := range s.topics {
			row.seen = false
		}
	}
	s.timeMS = max(s.timeMS, u.GetTimeMs())
	if u.GetCluster() != nil {
		s.cluster = u.GetCluster()
		s.forgetBrokers()
	}
	for _, status := range u.GetTopics() {
		s.applyTopic(status)
	}
	for _, name := range u.GetRemovedTopics() {
		delete(s.topics, name)
	}
	if len(u.GetTopics())+len(u.GetRemovedTopics()) > 0 {
		s.version++
	}
	if u.GetComplete() {
		s.finish()
	}
	s.applyEvents(u.GetEvents())
}

func (s *state) applyTopic(status *smqpb.TopicStatus) {
	row := s.topics[status.GetTopic()]
	if row == nil || row.GetTopicId() != status.GetTopicId() {
		row = &topicRow{lower: strings.ToLower(status.GetTopic())}
		s.topics[status.GetTopic()] = row
	}
	row.TopicStatus, row.seen = status, true
}

// finish ends a snapshot: what it did not tell of is not there any more. Until
// then the old is shown, rather than a screen that empties and fills again.
func (s *state) finish() {
	for name, row := range s.topics {
		if !row.seen {
			delete(s.topics, name)
		}
	}
	s.complete = true
	s.version++
}

func (s *state) applyEvents(events []*smqpb.LayoutEvent) {
	s.events = append(s.events, events...)
	if n := len(s.events) - maxEvents; n > 0 {
		s.dropped += n
		s.events = append(s.events[:0:0], s.events[n:]...)
	}
}

// forgetBrokers drops the histories of brokers that have gone.
func (s *state) forgetBrokers() {
	here := make(map[string]bool)
	for _, b := range s.cluster.GetBrokers() {
		here[b.GetId()] = true
	}
	for id := range s.brokers {
		if !here[id] {
			delete(s.brokers, id)
		}
	}
}

// sample takes the rates of a second into the histories.
func (s *state) sample() {
	for _, row := range s.topics {
		row.rates.add(row.GetBytesPerSecond())
	}
	for _, b := range s.cluster.GetBrokers() {
		h := s.brokers[b.GetId()]
		if h == nil {
			h = &history{}
			s.brokers[b.GetId()] = h
		}
		if b.GetLoad() != nil { // else nobody knows it
			h.add(b.GetLoad().GetBytesPerSecond())
		}
	}
	if s.detail != nil {
		for _, live := range s.detail.segments {
			live.rates.add(live.load.GetBytesPerSecond())
		}
	}
}

// masterless reports whether no master leads: then nobody knows how the brokers
// are and what they take in.
func (s *state) masterless() bool { return s.cluster != nil && s.cluster.GetLeadingMaster() == "" }

// traffic is what the brokers take in together, as far as it is known, in words.
func (s *state) traffic() string {
	var messages, bytes float64
	told := 0
	for _, b := range s.cluster.GetBrokers() {
		if l := b.GetLoad(); l != nil {
			messages, bytes, told = messages+l.GetMessagesPerSecond(), bytes+l.GetBytesPerSecond(), told+1
		}
	}
	if s.cluster == nil || told == 0 && len(s.cluster.GetBrokers()) > 0 {
		return "traffic not known"
	}
	return traffic(messages, bytes)
}

// broker is what is known of a broker, nil when it has gone.
func (s *state) broker(id string) *smqpb.BrokerInfo {
	for _, b := range s.cluster.GetBrokers() {
		if b.GetId() == id {
			return b
		}
	}
	return nil
}

// address is a broker's address, or the beginning of its id when it has gone.
func (s *state) address(id string) string {
	if b := s.broker(id); b != nil {
		return b.GetAddress()
	}
	return short(id)
}

// owner is where a segment's owner is.
func (s *state) owner(segment *smqpb.Segment) string {
	switch {
	case segment.GetOwner() == "":
		return "unassigned"
	case segment.GetOwnerAddress() != "":
		return segment.GetOwnerAddress()
	}
	return s.address(segment.GetOwner())
}

// presence is what is amiss with a broker that a layout names, empty when it is
// well or not known: a segment that nobody uses keeps the brokers that it was
// given, also those that have gone since.
func (s *state) presence(id string) string {
	b := s.broker(id)
	switch {
	case id == "" || s.cluster == nil:
		return ""
	case b == nil:
		return "gone"
	case b.GetSilent():
		return "silent"
	case b.GetDraining():
		return "draining"
	}
	return ""
}

// marked is a broker's name with what is amiss with it.
func (s *state) marked(name, id string) (string, role) {
	switch what := s.presence(id); what {
	case "":
		return name, normal
	case "draining":
		return name + " (" + what + ")", warning
	default:
		return name + " (" + what + ")", alarm
	}
}

// named is a broker's address with the beginning of its id, and what is amiss
// with it.
func (s *state) named(address, id string) string {
	if what := s.presence(id); what != "" {
		return address + " (" + short(id) + ", " + what + ")"
	}
	return address + " (" + short(id) + ")"
}

// followers is how many a segment has: those that are left of those that it was
// given.
func (s *state) followers(segment *smqpb.Segment) (string, role) {
	all := len(segment.GetReplicas())
	left := all
	for _, r := range segment.GetReplicas() {
		if s.presence(r.GetBroker()) == "gone" {
			left--
		}
	}
	if left < all {
		return fmt.Sprintf("%d/%d", left, all), alarm
	}
	return fmt.Sprint(all), normal
}
