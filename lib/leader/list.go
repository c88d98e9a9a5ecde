package leader

import (
	"context"
	"errors"
	"fmt"

	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// Sizes of a page of topics: when none is asked for, and at most.
const (
	defaultPage = 500
	maxPage     = 10_000
)

// ListTopics returns a page of topics, in order of namespace, then name. One that
// is damaged is among them, with what is wrong with it.
func (l *Leader) ListTopics(ctx context.Context, req *smqpb.ListTopicsRequest) (*smqpb.ListTopicsResponse, error) {
	if err := l.leading(); err != nil {
		return nil, err
	}
	limit := min(int(req.GetLimit()), maxPage)
	if limit <= 0 {
		limit = defaultPage
	}
	namespaces, after, err := l.listFrom(ctx, req.GetNamespace(), req.GetAfter())
	if err != nil {
		return nil, err
	}
	resp := &smqpb.ListTopicsResponse{}
	for i, ns := range namespaces {
		if i > 0 {
			after = ""
		}
		for more := true; more; {
			// One more than fits tells whether there are more.
			var names []smq.Topic
			names, more, err = catalog.Names(ctx, l.Store, ns, after, limit-len(resp.Topics)+1)
			if err != nil {
				return nil, err
			}
			if len(names) == 0 {
				break
			}
			after = names[len(names)-1].Name
			page, err := l.summaries(ctx, names, req.GetNamesOnly())
			if err != nil {
				return nil, err
			}
			resp.Topics = append(resp.Topics, page...)
			if len(resp.Topics) > limit {
				resp.Topics, resp.More = resp.Topics[:limit], true
				return resp, nil
			}
		}
	}
	return resp, nil
}

// listFrom says which namespaces a listing goes through, and behind which name
// it starts in the first of them.
func (l *Leader) listFrom(ctx context.Context, namespace, after string) (namespaces []string, name string, err error) {
	var from smq.Topic
	if after != "" {
		if from, err = smq.ParseTopic(after); err != nil {
			return nil, "", err
		}
	}
	if namespace != "" {
		if _, err := smq.ParseTopic(namespace + "/x"); err != nil {
			return nil, "", err
		}
		if after != "" && from.Namespace != namespace {
			return nil, "", fmt.Errorf("%w page of namespace %q: it should start after %q", smq.ErrInvalid, namespace, after)
		}
		return []string{namespace}, from.Name, nil
	}
	rest, err := catalog.Namespaces(ctx, l.Store, from.Namespace)
	if err != nil || after == "" {
		return rest, "", err
	}
	return append([]string{from.Namespace}, rest...), from.Name, nil
}

// summaries describes those of the names that have a topic, damaged ones too.
func (l *Leader) summaries(ctx context.Context, names []smq.Topic, configOnly bool) ([]*smqpb.TopicSummary, error) {
	found := make([]*smqpb.TopicSummary, len(names))
	err := each(ctx, names, func(ctx context.Context, i int, name smq.Topic) (err error) {
		found[i], err = l.summary(ctx, name, configOnly)
		var damaged *damagedError
		switch {
		case errors.Is(err, smq.ErrNotFound):
			return nil
		case errors.As(err, &damaged):
			found[i] = l.damagedSummary(ctx, name, err)
			return nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var all []*smqpb.TopicSummary
	for _, s := range found {
		if s != nil {
			all = append(all, s)
		}
	}
	return all, nil
}

func (l *Leader) summary(ctx context.Context, name smq.Topic, configOnly bool) (*smqpb.TopicSummary, error) {
	if configOnly && l.known(name) == nil {
		c, err := catalog.ReadConfig(ctx, l.Store, name)
		if err != nil {
			return nil, l.judged(name, err)
		}
		return &smqpb.TopicSummary{Config: c.Proto()}, nil
	}
	t, err := l.topic(ctx, name, "")
	if err != nil {
		return nil, err
	}
	now := t.layout()
	s := &smqpb.TopicSummary{Config: t.config().Proto(), LayoutVersion: now.Version, Segments: int32(len(now.Segments))}
	if orphans := l.orphansOf(t); len(orphans) > 0 {
		s.OrphanedSegments = int32(len(orphans))
		s.OrphanError = rpc.ErrorInfo(t.whyStuck(orphans))
	}
	if d := l.damages()[name]; d != nil { // it was loaded before
		s.Error = rpc.ErrorInfo(d.err)
	}
	return s, nil
}

// damagedSummary is what can be said of a topic that does not load.
func (l *Leader) damagedSummary(ctx context.Context, name smq.Topic, why error) *smqpb.TopicSummary {
	s := &smqpb.TopicSummary{Config: &smqpb.TopicConfig{Topic: name.String()}, Error: rpc.ErrorInfo(why)}
	if c, err := catalog.ReadConfig(ctx, l.Store, name); err == nil {
		s.Config = c.Proto() // it is its layout that is damaged
	}
	return s
}
