package catalog

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

// passing are the errors that say nothing about a file: it is not there, the
// store is not, or nobody waits any more.
var passing = []error{
	smq.ErrNotFound, smq.ErrUnavailable, smq.ErrTimeout, smq.ErrOverloaded, store.ErrAmbiguous,
	context.Canceled, context.DeadlineExceeded,
}

// IsDamage reports whether an error of reading a topic's files says that one of
// them is there and cannot be read: its content is damaged, or of a form that
// this program does not know, or the store refuses to give it. It stays so until
// somebody mends it, and says nothing of other topics.
func IsDamage(err error) bool {
	for _, other := range passing {
		if errors.Is(err, other) {
			return false
		}
	}
	return err != nil
}

// Damaged is a topic of which a file cannot be read.
type Damaged struct {
	Topic smq.Topic
	Err   error // names the file
}

// checkPage is how many names Check lists at once.
const checkPage = 1000

// Check looks for damaged files among those that brokers need of every topic: its
// configuration and its newest layout version. The error tells what kept it from
// looking at all of them; what it has found until then is there.
func Check(ctx context.Context, st store.Store) (found []Damaged, err error) {
	namespaces, err := Namespaces(ctx, st, "")
	if err != nil {
		return nil, err
	}
	for _, ns := range namespaces {
		after := ""
		for more := true; more; {
			var names []smq.Topic
			if names, more, err = Names(ctx, st, ns, after, checkPage); err != nil {
				return found, err
			}
			if len(names) > 0 {
				after = names[len(names)-1].Name
			}
			page, err := checkTopics(ctx, st, names)
			found = append(found, page...)
			if err != nil {
				return found, err
			}
		}
	}
	return found, nil
}

func checkTopics(ctx context.Context, st store.Store, names []smq.Topic) (found []Damaged, err error) {
	errs := make([]error, len(names))
	var group errgroup.Group
	group.SetLimit(parallelReads)
	for i, name := range names {
		group.Go(func() error {
			errs[i] = checkTopic(ctx, st, name)
			return nil
		})
	}
	_ = group.Wait() // nothing fails it
	for i, name := range names {
		switch {
		case IsDamage(errs[i]):
			found = append(found, Damaged{name, errs[i]})
		case errs[i] != nil && err == nil:
			err = errs[i]
		}
	}
	return found, err
}

func checkTopic(ctx context.Context, st store.Store, name smq.Topic) error {
	c, err := ReadConfig(ctx, st, name)
	if err == nil {
		_, _, err = Latest(ctx, st, name, c.ID, 0)
	}
	if errors.Is(err, smq.ErrNotFound) {
		return nil // it is deleted, or being
	}
	return err
}
