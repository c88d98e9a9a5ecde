package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/seaweedmq/smq/lib/background"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
	"github.com/seaweedmq/smq/lib/store"
)

// format is the version of the form of topic.json.
const format = 1

// Config is a topic as it was created, with what was altered since: Replicas and
// Scaling may be.
type Config struct {
	Topic      smq.Topic
	ID         smq.TopicID
	Partitions int32
	Key        record.KeySource // where the partition key is
	CreatedMS  int64
	Replicas   int32         // brokers that hold what is not stored yet, if so many live; 0: the default
	Scaling    layout.Policy // what is 0 or empty is the cluster's default
}

// DefaultReplicas is how many brokers hold what is not stored yet, if so many
// live, unless a topic or the brokers' operator says otherwise.
const DefaultReplicas = 2

// MaxReplicas is the most that a topic may ask for.
const MaxReplicas = 5

// ReplicasWanted is how many brokers are to hold what is not stored yet; the
// given number for a topic that does not say.
func (c Config) ReplicasWanted(byDefault int) int {
	if c.Replicas == 0 {
		return byDefault
	}
	return int(c.Replicas)
}

// Proto is the configuration's form on the wire.
func (c Config) Proto() *smqpb.TopicConfig {
	return &smqpb.TopicConfig{
		Topic: c.Topic.String(), TopicId: string(c.ID), Partitions: c.Partitions,
		Key: c.Key.String(), CreatedMs: c.CreatedMS, Replicas: c.Replicas, Scaling: ScalingProto(c.Scaling),
	}
}

// Validate says whether a topic can be like that. The error is an
// smq.ErrInvalid.
func (c Config) Validate() error {
	switch {
	case c.Partitions < 1 || c.Partitions > smq.MaxPartitions:
		return fmt.Errorf("%w number of partitions %d: it must be between 1 and %d", smq.ErrInvalid, c.Partitions, smq.MaxPartitions)
	case c.Replicas < 0 || c.Replicas > MaxReplicas:
		return fmt.Errorf("%w number of replicas %d: it must be between 1 and %d, or 0 for the default", smq.ErrInvalid, c.Replicas, MaxReplicas)
	case !c.ID.Valid():
		return fmt.Errorf("%w topic id %q", smq.ErrInvalid, c.ID)
	}
	if err := c.Scaling.Validate(); err != nil {
		return err
	}
	_, err := smq.ParseTopic(c.Topic.Namespace + "/" + c.Topic.Name)
	return err
}

// acceptable is Validate for what somebody asks for now: it also refuses what could
// never come true.
func (c Config) acceptable() error {
	if err := c.Validate(); err != nil {
		return err
	}
	if least := c.Scaling.MinSegments; least > int(c.Partitions) {
		return fmt.Errorf("%w least number of segments %d: the topic has %s", smq.ErrInvalid, least, smq.Count(c.Partitions, "partition"))
	}
	return nil
}

// Entry is what topic.json says: a topic, or that the last one of the name is
// deleted.
type Entry struct {
	Config
	Deleted   bool
	DeletedMS int64

	version store.Version
}

type storedEntry struct {
	Format     int              `json:"format"`
	Topic      string           `json:"topic"`
	ID         smq.TopicID      `json:"topic_id"`
	Partitions int32            `json:"partitions"`
	Key        record.KeySource `json:"key"`
	CreatedMS  int64            `json:"created_ms"`
	Replicas   int32            `json:"replicas,omitempty"`
	Scaling    *storedScaling   `json:"scaling,omitempty"`
	Deleted    bool             `json:"deleted,omitempty"`
	DeletedMS  int64            `json:"deleted_ms,omitempty"`
}

func (e Entry) encode() []byte {
	b, err := json.Marshal(storedEntry{
		Format: format, Topic: e.Topic.Namespace + "/" + e.Topic.Name, ID: e.ID, Partitions: e.Partitions,
		Key: e.Key, CreatedMS: e.CreatedMS, Replicas: e.Replicas, Scaling: encodeScaling(e.Scaling), Deleted: e.Deleted, DeletedMS: e.DeletedMS,
	})
	if err != nil {
		// Numbers and strings always encode.
		panic(fmt.Sprintf("catalog: encoding topic %v: %v", e.Topic, err))
	}
	return append(b, '\n')
}

func decode(topic smq.Topic, data []byte) (Entry, error) {
	var in storedEntry
	if err := json.Unmarshal(data, &in); err != nil {
		return Entry{}, fmt.Errorf("it is %w: %v", smq.ErrCorrupt, err)
	}
	if in.Format != format {
		return Entry{}, fmt.Errorf("%w: its format is %d, this program reads %d", smq.ErrInvalid, in.Format, format)
	}
	scaling, err := in.Scaling.decode()
	if err != nil {
		return Entry{}, fmt.Errorf("it is %w: %v", smq.ErrCorrupt, err)
	}
	e := Entry{
		Config: Config{
			Topic: topic, ID: in.ID, Partitions: in.Partitions, Key: in.Key, CreatedMS: in.CreatedMS,
			Replicas: in.Replicas, Scaling: scaling,
		},
		Deleted:   in.Deleted,
		DeletedMS: in.DeletedMS,
	}
	if in.Topic != topic.Namespace+"/"+topic.Name {
		return Entry{}, fmt.Errorf("it is %w: it is about topic %q", smq.ErrCorrupt, in.Topic)
	}
	if err := e.Validate(); err != nil {
		return Entry{}, fmt.Errorf("it is %w: %v", smq.ErrCorrupt, err)
	}
	return e, nil
}

// Read returns what topic.json says, deleted topics included. smq.ErrNotFound
// when there has never been a topic of the name.
func Read(ctx context.Context, st store.Store, topic smq.Topic) (Entry, error) {
	data, version, err := st.Read(ctx, configPath(topic))
	if err != nil {
		return Entry{}, fmt.Errorf("read the configuration of topic %v: %w", topic, err)
	}
	e, err := decode(topic, data)
	if err != nil {
		return Entry{}, fmt.Errorf("configuration of topic %v, %s: %w", topic, configPath(topic), err)
	}
	e.version = version
	return e, nil
}

// ReadConfig returns the configuration of a topic that exists; smq.ErrNotFound
// when there is none.
func ReadConfig(ctx context.Context, st store.Store, topic smq.Topic) (Config, error) {
	e, err := Read(ctx, st, topic)
	switch {
	case errors.Is(err, smq.ErrNotFound), err == nil && e.Deleted:
		return Config{}, fmt.Errorf("topic %v: %w", topic, smq.ErrNotFound)
	case err != nil:
		return Config{}, err
	}
	return e.Config, nil
}

// Create brings a topic into being. smq.ErrExists when there is one of the
// name; any other error leaves open whether it was created, unless it is an
// smq.ErrInvalid.
func Create(ctx context.Context, st store.Store, c Config) error {
	if err := c.acceptable(); err != nil {
		return err
	}
	before, err := Read(ctx, st, c.Topic)
	switch {
	case errors.Is(err, smq.ErrNotFound):
	case err != nil:
		return err
	case before.ID == c.ID && !before.Deleted:
		return nil // an earlier attempt
	case !before.Deleted:
		return fmt.Errorf("topic %v: %w", c.Topic, smq.ErrExists)
	}
	after := Entry{Config: c, version: before.version}
	err = after.put(ctx, st, after.isThere)
	if errors.Is(err, smq.ErrConflict) {
		return fmt.Errorf("topic %v: %w", c.Topic, smq.ErrExists)
	}
	return err
}

// Delete notes that the topic that e describes is deleted. smq.ErrConflict when
// topic.json has changed since it was read.
func Delete(ctx context.Context, st store.Store, e Entry, nowMS int64) error {
	e.Deleted, e.DeletedMS = true, nowMS
	return e.put(ctx, st, e.isThere)
}

// Alter gives the topic that e describes another configuration, of the same
// incarnation. smq.ErrConflict when topic.json has changed since it was read, in
// a way that may or may not include the alteration: the caller reads it again
// and decides anew. smq.ErrInvalid for what no topic can be.
func Alter(ctx context.Context, st store.Store, e Entry, c Config) error {
	if c.Topic != e.Topic || c.ID != e.ID || c.Partitions != e.Partitions || e.Deleted {
		return fmt.Errorf("%w alteration of topic %v: it would be another one", smq.ErrInvalid, e.Topic)
	}
	if err := c.acceptable(); err != nil {
		return err
	}
	e.Config = c
	return e.put(ctx, st, func(now Entry) bool { return now.Config == c && !now.Deleted })
}

// put replaces the version that e was read as. When it cannot tell whether an
// attempt was applied it tries again, until it can or ctx ends. Then what is
// there now tells a repeat of an attempt that was applied from somebody else's
// change, as both are conflicts: isThere says whether it is what e puts there.
func (e Entry) put(ctx context.Context, st store.Store, isThere func(now Entry) bool) error {
	var wait background.Backoff
	maybe := false // an attempt may have been applied
	for {
		_, err := st.Replace(ctx, configPath(e.Topic), e.encode(), e.version)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, smq.ErrConflict) && maybe:
			now, err := Read(ctx, st, e.Topic)
			if err != nil {
				return err
			}
			if isThere(now) {
				return nil
			}
			return fmt.Errorf("write the configuration of topic %v: %w", e.Topic, smq.ErrConflict)
		case !errors.Is(err, store.ErrAmbiguous):
			return fmt.Errorf("write the configuration of topic %v: %w", e.Topic, err)
		}
		maybe = true
		if ended := wait.Next(ctx); ended != nil {
			return fmt.Errorf("write the configuration of topic %v: %w: %w", e.Topic, smq.ErrTimeout, err)
		}
	}
}

// Confirm proves that e was what topic.json said after the call began, and not the
// past, which a server that has fallen behind may answer a read with: it puts e where
// e was read, after which e has to be read anew. smq.ErrConflict when topic.json has
// changed; any other error proves nothing.
func (e Entry) Confirm(ctx context.Context, st store.Store) error {
	// Not by put: it takes in what a read says after an attempt of unknown outcome.
	if _, err := st.Replace(ctx, configPath(e.Topic), e.encode(), e.version); err != nil {
		return fmt.Errorf("confirm the configuration of topic %v: %w", e.Topic, err)
	}
	return nil
}

// isThere reports whether the incarnation is there, or deleted, as e wants it;
// it may have been altered since.
func (e Entry) isThere(now Entry) bool { return now.ID == e.ID && now.Deleted == e.Deleted }
