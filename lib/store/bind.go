package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/seaweedmq/smq/lib/smq"
)

// bindingPath is the file that binds a store to a cluster.
const bindingPath = "/cluster.json"

const bindingFormat = 1

// binding is what bindingPath holds.
type binding struct {
	Format    int           `json:"format"`
	ClusterID smq.ClusterID `json:"cluster_id"`
	Created   time.Time     `json:"created"`
}

// Bind makes sure that the store belongs to the cluster want, and returns the
// cluster that it belongs to. A store that belongs to none is bound to want. An
// empty want stands for whichever it is: a store that belongs to none is then
// bound to a new one. It may be repeated after any error.
//
// Errors: smq.ErrConflict when the store belongs to another cluster,
// smq.ErrCorrupt, and the store's.
func Bind(ctx context.Context, st Store, want smq.ClusterID) (smq.ClusterID, error) {
	got, err := bound(ctx, st)
	if errors.Is(err, smq.ErrNotFound) {
		id := want
		if id == "" {
			id = smq.NewClusterID()
		}
		data, merr := json.Marshal(binding{Format: bindingFormat, ClusterID: id, Created: time.Now().UTC()})
		if merr != nil {
			return "", merr
		}
		if err := st.Create(ctx, bindingPath, Bytes(append(data, '\n'))); err != nil && !errors.Is(err, smq.ErrExists) {
			return "", fmt.Errorf("bind store %v to cluster %s: %w", st, id, err)
		}
		got, err = bound(ctx, st)
	}
	switch {
	case err != nil:
		return "", fmt.Errorf("find the cluster that store %v belongs to: %w", st, err)
	case want != "" && got != want:
		return got, fmt.Errorf("%w: store %v belongs to cluster %s, not to %s", smq.ErrConflict, st, got, want)
	}
	return got, nil
}

func bound(ctx context.Context, st Store) (smq.ClusterID, error) {
	data, _, err := st.Read(ctx, bindingPath)
	if err != nil {
		return "", err
	}
	var b binding
	if err := json.Unmarshal(data, &b); err != nil || b.ClusterID == "" {
		return "", fmt.Errorf("%w %s", smq.ErrCorrupt, bindingPath)
	}
	if b.Format != bindingFormat {
		return "", fmt.Errorf("%w %s: format %d, this program reads %d", smq.ErrCorrupt, bindingPath, b.Format, bindingFormat)
	}
	return b.ClusterID, nil
}
