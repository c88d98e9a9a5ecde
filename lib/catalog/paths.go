package catalog

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

const root = "/topics"

func nameDir(topic smq.Topic) string { return root + "/" + topic.Namespace + "/" + topic.Name }

func configPath(topic smq.Topic) string { return nameDir(topic) + "/topic.json" }

func layoutDir(topic smq.Topic, id smq.TopicID) string { return seglog.TopicDir(topic, id) + "/layout" }

const versionSuffix = ".json"

func versionName(v uint64) string { return fmt.Sprintf("%020d", v) + versionSuffix }

func parseVersionName(name string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, versionSuffix)
	if !ok || len(digits) != 20 {
		return 0, false
	}
	v, err := strconv.ParseUint(digits, 10, 64)
	return v, err == nil
}

// Names lists, in order, up to limit names in the namespace that sort after the
// given one. Each has or had a topic; Read tells. It reports whether there are
// more. An empty namespace lists as empty.
func Names(ctx context.Context, st store.Store, namespace, after string, limit int) (names []smq.Topic, more bool, err error) {
	for len(names) <= limit {
		infos, err := st.List(ctx, root+"/"+namespace, after, limit+1)
		if err != nil {
			return nil, false, fmt.Errorf("list the topics of namespace %q: %w", namespace, err)
		}
		for _, info := range infos {
			after = info.Name
			if t, err := smq.ParseTopic(namespace + "/" + info.Name); err == nil && info.Dir {
				names = append(names, t)
			}
		}
		if len(infos) <= limit {
			break
		}
	}
	if len(names) > limit {
		return names[:limit], true, nil
	}
	return names, false, nil
}

// Namespaces lists the namespaces that sort after the given one.
func Namespaces(ctx context.Context, st store.Store, after string) ([]string, error) {
	infos, err := st.List(ctx, root, after, 0)
	if err != nil {
		return nil, fmt.Errorf("list the namespaces: %w", err)
	}
	var names []string
	for _, info := range infos {
		if _, err := smq.ParseTopic(info.Name + "/x"); err == nil && info.Dir {
			names = append(names, info.Name)
		}
	}
	return names, nil
}

// Incarnations lists the ids that have a folder under the topic's name: the
// present one's, and of deleted ones whose folder is left.
func Incarnations(ctx context.Context, st store.Store, topic smq.Topic) ([]smq.TopicID, error) {
	infos, err := st.List(ctx, nameDir(topic), "", 0)
	if err != nil {
		return nil, fmt.Errorf("list the folders of topic %v: %w", topic, err)
	}
	var ids []smq.TopicID
	for _, info := range infos {
		if id := smq.TopicID(info.Name); info.Dir && id.Valid() {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// RemoveIncarnation removes everything that a deleted topic has left. It
// refuses, with smq.ErrConflict, unless topic.json says that the id is not, and
// so will never again be, the topic's.
func RemoveIncarnation(ctx context.Context, st store.Store, topic smq.Topic, id smq.TopicID) error {
	// An id's folder comes after the configuration that names it. So if that
	// names another one now, id had its time. That an incarnation is deleted stays
	// true, but that the name is another's was true before id's time as well.
	e, err := Read(ctx, st, topic)
	switch {
	case err != nil && !errors.Is(err, smq.ErrNotFound):
		return err
	case err != nil || e.ID == id && !e.Deleted:
		return fmt.Errorf("remove incarnation %s of topic %v: %w: it may be in use", id, topic, smq.ErrConflict)
	}
	if e.ID != id {
		if err := e.Confirm(ctx, st); err != nil {
			return fmt.Errorf("remove incarnation %s of topic %v: %w", id, topic, err)
		}
	}
	if err := st.RemoveAll(ctx, seglog.TopicDir(topic, id)); err != nil {
		return fmt.Errorf("remove incarnation %s of topic %v: %w", id, topic, err)
	}
	return nil
}
