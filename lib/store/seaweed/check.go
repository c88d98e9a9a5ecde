package seaweed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	pb "github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/seaweedmq/smq/lib/smq"
)

// confFolder and confName are where filers keep their rules for folders.
const (
	confFolder = "/etc/seaweedfs"
	confName   = "filer.conf"
	// confSize bounds the rules that are read.
	confSize = 4 << 20
)

// Check says what is missing for what was acknowledged to survive, or stands in
// the way of it: one sentence each, none when all is well. It asks the cluster
// for a volume, so that the answer is the cluster's own.
func (s *Store) Check(ctx context.Context) ([]string, error) {
	b, assignErr := s.assign(ctx, 1)
	rules, err := s.rules(ctx)
	if err != nil {
		return nil, wrap(err, "check %s", s)
	}
	strangers, err := s.filers.strangers(ctx)
	if err != nil {
		return nil, wrap(err, "check %s", s)
	}
	var missing []string
	switch {
	case errors.Is(assignErr, smq.ErrNoSpace):
		missing = append(missing, "The cluster has no room for more volumes: nothing but small files can be stored.")
	case assignErr != nil:
		missing = append(missing, fmt.Sprintf("The cluster gives no place to store pieces at: %v.", assignErr))
	default:
		missing = append(s.missingSync(b.first.fsync), s.missingCopies(b)...)
	}
	missing = append(missing, harmfulRules(s.config.folder+"/", rules)...)
	return append(missing, strangers...), nil
}

// missingSync compares what the URL and the filer's rule say. The rule alone
// covers entries.
func (s *Store) missingSync(byRule bool) (missing []string) {
	if !byRule {
		missing = append(missing, fmt.Sprintf("The filer does not sync its entries in %[1]s before it acknowledges them, so a machine that fails may lose some: "+
			"in weed shell, fs.configure -locationPrefix=%[1]s/ -fsync -apply.", s.config.folder))
	}
	if s.config.sync == syncNever || s.config.sync == syncByRule && !byRule {
		missing = append(missing, "The volume servers do not sync pieces before they acknowledge them: add fsync=true to the store's URL.")
	}
	return missing
}

func (s *Store) missingCopies(b *batch) []string {
	if !b.alone {
		return nil
	}
	return []string{"Every piece is on one volume server only, and is lost with its disk: " +
		"set the filer's default replication, or add replication=001 to the store's URL."}
}

// rules reads the filer's rules for folders.
func (s *Store) rules(ctx context.Context) (*pb.FilerConf, error) {
	conf := &pb.FilerConf{}
	e, err := s.filers.lookUp(ctx, confFolder+"/"+confName)
	if errors.Is(err, smq.ErrNotFound) {
		return conf, nil
	}
	if err != nil {
		return nil, err
	}
	f, err := parseEntry(e)
	if err == nil && !f.inline() {
		err = s.resolve(ctx, &f)
	}
	if err != nil {
		return nil, err
	}
	if f.info.Size > confSize {
		return nil, fmt.Errorf("%w: the filer's rules are %d bytes", smq.ErrTooLarge, f.info.Size)
	}
	text := make([]byte, f.info.Size)
	if err := s.readInto(ctx, f, text, 0); err != nil {
		return nil, err
	}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, conf); err != nil {
		return nil, fmt.Errorf("%w: the filer's rules: %w", smq.ErrCorrupt, err)
	}
	return conf, nil
}

// harmfulRules finds rules for the store's folder, or for something in it,
// that no store can live with.
func harmfulRules(folder string, conf *pb.FilerConf) (found []string) {
	for _, r := range conf.GetLocations() {
		prefix := r.GetLocationPrefix()
		if !strings.HasPrefix(folder, prefix) && !strings.HasPrefix(prefix, folder) {
			continue
		}
		for what, is := range map[string]bool{
			"removes files after " + r.GetTtl():      r.GetTtl() != "",
			"makes files read-only":                  r.GetReadOnly(),
			"keeps files from being changed (worm)":  r.GetWorm(),
			"keeps the bytes of files that are gone": r.GetDisableChunkDeletion(),
		} {
			if is {
				found = append(found, fmt.Sprintf("The filer's rule for %s %s: take it back with fs.configure in weed shell.", prefix, what))
			}
		}
	}
	slices.Sort(found)
	return found
}
