// Package scaling has the flags that say when topics scale, of commands that
// set it for a topic or for all.
package scaling

import (
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/command/connect"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

var modes = []string{"off", "manual", "auto"}

// Flags are the flags that say when a topic's segments split and merge.
type Flags struct {
	mode       string
	splitAbove []string
	min, max   int32
	coolDown   cli.Duration
}

// Fields are the flags' names, and what the protocol calls what they set.
var Fields = []struct {
	Flag   string
	Fields []string
}{
	{"scaling", []string{"mode"}},
	{"split-above", []string{"split_bytes_per_second", "split_messages_per_second"}},
	{"min-segments", []string{"min_segments"}},
	{"max-segments", []string{"max_segments"}},
	{"cool-down", []string{"cool_down_ms"}},
}

// Register adds the flags to a command.
func (s *Flags) Register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.mode, "scaling", "", "`MODE`: off, manual (only on request) or auto: whether segments split and merge")
	f.StringSliceVar(&s.splitAbove, "split-above", nil, "split a segment above this `RATE`, 20MB/s or 50000msg/s; may be given once for each")
	f.Int32Var(&s.min, "min-segments", 0, "keep at least `N` segments")
	f.Int32Var(&s.max, "max-segments", 0, "make at most `N` segments")
	f.Var(&s.coolDown, "cool-down", "the least time between two changes of the same partitions")
	connect.CompleteWords(cmd, "scaling", modes...)
}

// RegisterDefaults adds the flags to a command that sets them for all topics that
// do not say otherwise, with what applies when it does not either.
func (s *Flags) RegisterDefaults(cmd *cobra.Command) {
	s.Register(cmd)
	p := layout.DefaultPolicy()
	for flag, text := range map[string]string{
		"scaling":      string(p.Mode),
		"split-above":  smq.ByteRate(p.Split.Bytes) + "," + smq.MessageRate(p.Split.Messages),
		"min-segments": strconv.Itoa(p.MinSegments),
		"max-segments": strconv.Itoa(p.MaxSegments),
		"cool-down":    cli.FormatDuration(p.CoolDown),
	} {
		f := cmd.Flags().Lookup(flag)
		f.Usage += " (default " + text + ")"
	}
}

// Changed reports whether any of the flags is given.
func (s *Flags) Changed(f *pflag.FlagSet) bool {
	for _, field := range Fields {
		if f.Changed(field.Flag) {
			return true
		}
	}
	return false
}

// Policy is what the flags say, as a default for topics. The error is one of
// usage.
func (s *Flags) Policy(f *pflag.FlagSet) (layout.Policy, error) {
	parsed, err := s.Parse(f)
	if err != nil {
		return layout.Policy{}, err
	}
	p, err := catalog.ParseScaling(parsed)
	if err != nil {
		return p, cli.Usagef("%w", err)
	}
	return p, nil
}

// Parse is what the flags say; nil when none is given. The error is one of usage.
func (s *Flags) Parse(f *pflag.FlagSet) (*smqpb.Scaling, error) {
	if !s.Changed(f) {
		return nil, nil
	}
	out := &smqpb.Scaling{Mode: s.mode, MinSegments: s.min, MaxSegments: s.max, CoolDownMs: time.Duration(s.coolDown).Milliseconds()}
	if f.Changed("scaling") && !slices.Contains(modes, s.mode) {
		return nil, cli.OneOf("mode of scaling", s.mode, modes...)
	}
	for _, least := range []struct {
		flag string
		n    int64
		text string
	}{{"min-segments", int64(s.min), "1"}, {"max-segments", int64(s.max), "1"}, {"cool-down", out.CoolDownMs, "1ms"}} {
		if f.Changed(least.flag) && least.n < 1 {
			return nil, cli.Usagef("--%s %s: the least is %s", least.flag, f.Lookup(least.flag).Value, least.text)
		}
	}
	if s.max > 0 && s.min > s.max {
		return nil, cli.Usagef("--min-segments %d is above --max-segments %d", s.min, s.max)
	}
	for _, text := range s.splitAbove {
		v, err := cli.ParseRate(text)
		if err != nil {
			return nil, cli.Usagef("--split-above %w", err)
		}
		target := &out.SplitMessagesPerSecond
		if v.Bytes {
			target = &out.SplitBytesPerSecond
		}
		if *target != 0 {
			return nil, cli.Usagef("--split-above %s: only one rate in bytes and one in messages", text)
		}
		*target = v.PerSecond
	}
	return out, nil
}
