package admin

import (
	"regexp"
	"testing"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// ones are numbers of things, as a person would not write them.
var ones = regexp.MustCompile(`\b1 (live )?(segments|partitions|replicas|brokers|masters|messages|chunks|problems)\b|\b1 [a-z]+ are\b`)

// One is not many.
func TestOneOfAThing(t *testing.T) {
	s := startStub(t)
	s.layout.Segments = s.layout.Segments[:1]
	s.layout.Segments[0].Hi = 1
	s.config.Partitions, s.config.Replicas = 1, 1
	s.config.Scaling = &smqpb.Scaling{MinSegments: 1, MaxSegments: 1}
	for _, args := range [][]string{
		{"topic", "describe", "orders"},
		{"topic", "create", "one", "--partitions", "1"},
		{"topic", "alter", "orders", "--replicas", "1", "--min-segments", "1", "--max-segments", "1"},
		{"topic", "delete", "orders"},
		{"doctor"},
	} {
		stdout, stderr, _ := s.run(t, args...)
		if found := ones.FindString(stdout + stderr); found != "" {
			t.Errorf("%v says %q:\n%s%s", args, found, stdout, stderr)
		}
	}
	if stdout, _, code := s.run(t, "topic", "describe", "orders"); code != cli.ExitDone || !regexp.MustCompile(`(?m)^layout: .*, 1 live segment$`).MatchString(stdout) {
		t.Errorf("code %d, %s", code, stdout)
	}
}
