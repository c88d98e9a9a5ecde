package pub

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/time/rate"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/smq"
)

// options are the flags of smq-pub.
type options struct {
	format      string
	delimiter   string
	keyDelim    string
	key         string
	headers     []string
	partition   int32
	repartition bool
	null        bool
	each        bool

	acks     string
	compress string
	linger   cli.Duration
	batch    cli.Size
	delivery cli.Duration
	spread   bool
	rate     string

	create     bool
	partitions int32
	failedTo   string
	tee        bool
	report     bool
	progress   bool
}

var formats = []string{"lines", "json", "raw", "length"}

func (o *options) register(f *pflag.FlagSet) {
	o.linger = cli.Duration(client.DefaultLinger)
	o.batch = client.DefaultBatchBytes
	o.delivery = cli.Duration(client.DefaultDeliveryTimeout)
	f.StringVarP(&o.format, "format", "f", "lines", "`FORMAT`: lines, json, raw, length, or a template such as '%k %v\\n'")
	f.StringVarP(&o.delimiter, "delimiter", "d", `\n`, "`TEXT` that ends a message; escapes \\t \\n \\r \\0 \\xNN")
	f.StringVarP(&o.keyDelim, "key-delimiter", "K", "", "`TEXT` that ends the key, which comes before the value")
	f.StringVarP(&o.key, "key", "k", "", "`KEY` of messages that have none")
	f.StringArrayVarP(&o.headers, "header", "H", nil, "add a header, `NAME=VALUE`; repeat for more")
	f.Int32VarP(&o.partition, "partition", "p", client.AnyPartition, "publish to partition `N`, whatever key or envelope say")
	f.BoolVar(&o.repartition, "repartition", false, "choose partitions anew, whatever envelopes or the template say")
	f.BoolVar(&o.null, "null", false, "an empty value is null")
	f.BoolVar(&o.each, "each", false, "every FILE is one message")
	f.StringVar(&o.acks, "acks", "default", "`LEVEL`: stored, replicated, or default (the best that the topic gives)")
	f.StringVar(&o.compress, "compress", "none", "`CODEC`: none, gzip, snappy, lz4 or zstd")
	f.Var(&o.linger, "linger", "how long a message may wait for others to share its batch")
	f.Var(&o.batch, "batch", "size of a batch, before compression")
	f.Var(&o.delivery, "delivery-timeout", "give a message up after this long; 0: never")
	f.BoolVar(&o.spread, "spread", false, "spread messages without a key over all partitions")
	f.StringVar(&o.rate, "rate", "", "at most this `RATE`, 1000msg/s or 10MB/s")
	f.BoolVar(&o.create, "create", false, "make the topic if it is not there")
	f.Int32Var(&o.partitions, "partitions", 0, "with --create, `N` partitions (default 64)")
	f.StringVar(&o.failedTo, "failed-to", "", "write messages that are not acked to `FILE`, as envelopes (-f json); it must be new or empty")
	f.BoolVar(&o.tee, "tee", false, "pass the input on to standard output")
	f.BoolVar(&o.report, "report", false, "write a line of JSON for each ack to standard output")
	cli.MayBeEmpty(f, "key", "delimiter", "key-delimiter")
	f.BoolVar(&o.progress, "progress", false, "show progress, also off a terminal (on by default on one)")
}

// source makes the parser that the flags describe, or says what is wrong with
// them.
func (o *options) source(f *pflag.FlagSet, files int) (source, error) {
	if err := o.check(f, files); err != nil {
		return nil, err
	}
	headers, err := parseHeaders(o.headers)
	if err != nil {
		return nil, err
	}
	parser, err := o.parser()
	if err != nil {
		return nil, err
	}
	s := &shaped{source: parser, headers: headers, partition: o.partition, anew: o.repartition, null: o.null}
	if f.Changed("key") {
		s.key = []byte(o.key)
	}
	return s, nil
}

// check finds flags that contradict each other.
func (o *options) check(f *pflag.FlagSet, files int) error {
	parsed := o.format == "lines" && !o.each
	switch {
	case !slices.Contains(formats, o.format) && !strings.Contains(o.format, "%"):
		return cli.OneOf("format", o.format, formats...)
	case f.Changed("delimiter") && !parsed, f.Changed("key-delimiter") && !parsed:
		return cli.Usagef("-d and -K need lines: they go with neither another format nor --each")
	case o.each && f.Changed("format") && o.format != "raw":
		return cli.Usagef("--each takes files as they are: it does not go with -f %s", o.format)
	case o.each && files == 0:
		return cli.Usagef("--each needs a FILE")
	case o.null && o.format == "json":
		return cli.Usagef("--null does not go with -f json, which says null itself")
	case f.Changed("partition") && o.partition < 0:
		return cli.Usagef("partition %d: there are none below 0", o.partition)
	case f.Changed("partition") && o.repartition:
		return cli.Usagef("-p and --repartition exclude each other")
	case f.Changed("partition") && o.spread:
		return cli.Usagef("-p and --spread exclude each other")
	case o.repartition && (o.each || o.format == "lines" || o.format == "raw" || o.format == "length"):
		return cli.Usagef("--repartition needs -f json or a template: nothing else says a partition")
	case f.Changed("key-delimiter") && o.keyDelim == "":
		return cli.Usagef("-K is empty; leave it out when messages have no key")
	case o.tee && o.report:
		return cli.Usagef("--tee and --report both write to standard output; use one")
	case f.Changed("partitions") && !o.create:
		return cli.Usagef("--partitions needs --create")
	case f.Changed("partitions") && (o.partitions < 1 || o.partitions > smq.MaxPartitions):
		return cli.Usagef("--partitions %d: a topic has 1 to %d", o.partitions, smq.MaxPartitions)
	case o.batch < 1 || o.batch > smq.MaxBatchSize:
		return cli.Usagef("--batch %v: use 1B to %s", &o.batch, cli.FormatSize(smq.MaxBatchSize))
	}
	return nil
}

func (o *options) parser() (source, error) {
	switch {
	case o.each || o.format == "raw":
		return &whole{}, nil
	case o.format == "json":
		return &envelopes{}, nil
	case o.format == "length":
		return &lengths{}, nil
	case o.format != "lines":
		return newTemplate(o.format)
	}
	delimiter, err := cli.Unescape(o.delimiter)
	if err != nil {
		return nil, err
	}
	key, err := cli.Unescape(o.keyDelim)
	if err != nil {
		return nil, err
	}
	if len(delimiter) == 0 {
		return nil, cli.Usagef("-d is empty; -f raw takes the whole input as one message")
	}
	return &lines{delimiter: delimiter, key: key}, nil
}

func parseHeaders(texts []string) ([]record.RecordHeader, error) {
	var headers []record.RecordHeader
	for _, text := range texts {
		name, value, found := strings.Cut(text, "=")
		if !found || name == "" {
			return nil, cli.Usagef("header %q is not NAME=VALUE", text)
		}
		headers = append(headers, record.RecordHeader{Key: []byte(name), Value: []byte(value)})
	}
	return headers, nil
}

// publisher is what the flags say to the client.
func (o *options) publisher() (client.PublisherOptions, error) {
	acks, err := client.ParseAckLevel(o.acks)
	if err != nil {
		return client.PublisherOptions{}, cli.OneOf("ack level", o.acks, "stored", "replicated", "default")
	}
	codec, err := record.ParseCodec(o.compress)
	if err != nil {
		return client.PublisherOptions{}, cli.OneOf("codec", o.compress, "none", "gzip", "snappy", "lz4", "zstd")
	}
	options := client.PublisherOptions{
		Acks: acks, Codec: codec, Spread: o.spread, BatchBytes: int(o.batch),
		Linger: time.Duration(o.linger), DeliveryTimeout: time.Duration(o.delivery),
	}
	if options.Linger == 0 {
		options.Linger = client.NoLinger
	}
	if options.DeliveryTimeout == 0 {
		options.DeliveryTimeout = client.Forever
	}
	return options, nil
}

// pace is a limit of --rate: so many messages, or so many bytes, a second.
type pace struct {
	limiter *rate.Limiter
	bytes   bool
}

// parseRate reads the limit of --rate; without one it is nil.
func parseRate(text string) (*pace, error) {
	if text == "" {
		return nil, nil
	}
	r, err := cli.ParseRate(text)
	if err != nil {
		return nil, cli.Usagef("--rate %w", err)
	}
	return &pace{limiter: newLimiter(r.PerSecond), bytes: r.Bytes}, nil
}

// checkFailures refuses a file of --failed-to that is an input, or that holds
// something: most likely what an earlier run could not publish.
func (o *options) checkFailures(inputs []input) error {
	if o.failedTo == "" {
		return nil
	}
	target, err := os.Stat(o.failedTo)
	if err != nil {
		return nil // it is made, or that says what is wrong
	}
	for _, in := range inputs {
		if in.info != nil && os.SameFile(in.info, target) {
			return cli.Usagef("--failed-to %s is also the input %s", o.failedTo, in.name)
		}
	}
	if target.Mode().IsRegular() && target.Size() > 0 {
		return fmt.Errorf("--failed-to %s: %w and is not empty; publish what it holds (-f json), or name another file", o.failedTo, smq.ErrExists)
	}
	return nil
}

// openFailures makes the file of --failed-to; it returns nil when there is no
// such flag.
func (o *options) openFailures() (*os.File, error) {
	if o.failedTo == "" {
		return nil, nil
	}
	return os.OpenFile(o.failedTo, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
}
