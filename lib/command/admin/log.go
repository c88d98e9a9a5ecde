package admin

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/command/connect"
	"github.com/seaweedmq/smq/lib/command/node"
	"github.com/seaweedmq/smq/lib/command/render"
	"github.com/seaweedmq/smq/lib/record"
	"github.com/seaweedmq/smq/lib/seglog"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/store"
)

func newLog(e *cli.Env) *cobra.Command {
	return group("log", "Read what is stored", newLogDump(e), newLogVerify(e))
}

func newLogDump(e *cli.Env) *cobra.Command {
	var format string
	var footer bool
	cmd := &cobra.Command{
		Use:   "dump FILE…",
		Short: "Print the messages of a chunk",
		Long: `Print the messages of chunks (FILE, or - for standard input), with no broker and
no store: all that is needed is in the file. By default each message is an
envelope of JSON, a line each; -f takes what smq-sub -f takes. --footer prints
what the chunk says of itself instead. A chunk that fails a check prints nothing.`,
		Example: `  smq-admin log dump 00000000000000000007.log
  curl -sf http://filer:8888/smq/topics/…/00000000000000000007.log | smq-admin log dump -
  smq-admin log dump *.log -f '%p %o %v\n'`,
		Args: cli.Args("FILE…"),
		RunE: func(_ *cobra.Command, args []string) error {
			show, err := render.New(format, []byte("\n"))
			if err != nil {
				return err
			}
			for _, path := range args {
				if err := dump(e, path, show, footer); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&format, "format", "f", "json", "`FORMAT`: json, value, raw, length or a template")
	cmd.Flags().BoolVar(&footer, "footer", false, "print the footer as JSON instead of the messages")
	connect.CompleteWords(cmd, "format", render.Formats...)
	return cmd
}

func dump(e *cli.Env, path string, show render.Func, footer bool) error {
	name, data, err := readFile(e, path)
	if err != nil {
		return err
	}
	chunk, err := seglog.ParseChunk(data)
	if err != nil {
		return fmt.Errorf("chunk %s: %w", name, err)
	}
	if footer {
		return dumpFooter(e, chunk)
	}
	topic, err := smq.ParseTopic(chunk.Footer.GetTopic())
	if err != nil {
		return fmt.Errorf("chunk %s: %w: its footer names no topic", name, smq.ErrCorrupt)
	}
	var reader record.Reader
	var text []byte
	for partition, batch := range chunk.Batches() {
		if err := reader.Reset(batch); err != nil {
			return fmt.Errorf("chunk %s, partition %d: %w", name, partition, err)
		}
		text = text[:0]
		for {
			r, ok := reader.Next()
			if !ok {
				break
			}
			text = show(text, topic.String(), partition, &r)
		}
		if reader.Err() != nil {
			return fmt.Errorf("chunk %s, partition %d: %w", name, partition, reader.Err())
		}
		if _, err := e.Stdout.Write(text); err != nil {
			return err
		}
	}
	return nil
}

func readFile(e *cli.Env, path string) (name string, data []byte, err error) {
	if path == "-" {
		data, err = io.ReadAll(e.Stdin)
		return "on standard input", data, err
	}
	data, err = os.ReadFile(path)
	return path, data, err
}

// dumpFooter prints a footer and what is known besides.
func dumpFooter(e *cli.Env, chunk *seglog.Chunk) error {
	text, err := json.MarshalIndent(footerView{Hash: hex.EncodeToString(chunk.Hash), Size: chunk.Size, Footer: fieldsOf(chunk.Footer.ProtoReflect())}, "", "  ")
	if err != nil {
		return err
	}
	_, err = e.Stdout.Write(append(text, '\n'))
	return err
}

// footerView is what a chunk says of itself.
type footerView struct {
	Hash   string         `json:"footer_sha256"`
	Size   int64          `json:"size"`
	Footer map[string]any `json:"footer"`
}

// fieldsOf is a message with raw numbers, and bytes in hexadecimal: protojson
// would print large numbers as strings.
func fieldsOf(m protoreflect.Message) map[string]any {
	fields := map[string]any{}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if !f.IsList() {
			fields[string(f.Name())] = valueOf(f, v)
			return true
		}
		list := make([]any, v.List().Len())
		for i := range list {
			list[i] = valueOf(f, v.List().Get(i))
		}
		fields[string(f.Name())] = list
		return true
	})
	return fields
}

func valueOf(f protoreflect.FieldDescriptor, v protoreflect.Value) any {
	switch f.Kind() {
	case protoreflect.MessageKind:
		return fieldsOf(v.Message())
	case protoreflect.BytesKind:
		return hex.EncodeToString(v.Bytes())
	}
	return v.Interface()
}

// verificationView is what is found in a topic.
type verificationView struct {
	Topic          string   `json:"topic"`
	TopicID        string   `json:"topic_id"`
	LayoutVersions uint64   `json:"layout_versions"`
	Segments       int      `json:"segments"`
	Chunks         uint64   `json:"chunks"`
	Batches        uint64   `json:"batches"`
	Messages       uint64   `json:"messages"`
	Bytes          uint64   `json:"bytes"`
	Problems       []string `json:"problems"`
}

func viewVerification(topic smq.Topic, v catalog.Verification) verificationView {
	view := verificationView{
		Topic: topic.String(), TopicID: string(v.Config.ID), LayoutVersions: v.Versions, Segments: v.Segments,
		Chunks: v.Chunks, Batches: v.Batches, Messages: v.Messages, Bytes: v.Bytes, Problems: v.Problems,
	}
	if view.Problems == nil {
		view.Problems = []string{}
	}
	return view
}

var verificationColumns = cli.View[verificationView]{
	Name: func(v verificationView) string { return v.Topic },
	Columns: []cli.Column[verificationView]{
		{Header: "TOPIC", Cell: func(v verificationView) string { return v.Topic }},
		{Header: "LAYOUT_VERSIONS", Cell: func(v verificationView) string { return number(v.LayoutVersions) }},
		{Header: "SEGMENTS", Cell: func(v verificationView) string { return number(int64(v.Segments)) }},
		{Header: "CHUNKS", Cell: func(v verificationView) string { return number(v.Chunks) }},
		{Header: "BATCHES", Cell: func(v verificationView) string { return number(v.Batches) }},
		{Header: "MESSAGES", Cell: func(v verificationView) string { return number(v.Messages) }},
		{Header: "BYTES", Cell: func(v verificationView) string { return number(v.Bytes) }},
		{Header: "PROBLEMS", Cell: func(v verificationView) string { return number(int64(len(v.Problems))) }},
	},
}

func newLogVerify(e *cli.Env) *cobra.Command {
	var storeURL string
	cmd := &cobra.Command{
		Use:   "verify TOPIC",
		Short: "Check a topic's whole log in the store",
		Long: `Read all that the store holds of a topic, with no broker, and check it: layout
versions, the hash chain from segment to segment, checksums, dense offsets,
producers' sequences, snapshots. Problems are printed, and the exit code is 1.

It may run while messages are published; those that come meanwhile may be left
out.`,
		Example: "  smq-admin log verify orders\n  smq-admin log verify orders --store dir:///var/lib/smq/store",
		Args:    cli.Args("TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error {
			topic, err := smq.ParseTopic(args[0])
			if err != nil {
				return err
			}
			return verify(cmd.Context(), e, topic, storeURL)
		},
		ValidArgsFunction: connect.CompleteTopic(e),
	}
	cmd.Flags().StringVar(&storeURL, "store", "", "`URL` of the store, instead of asking the masters for it")
	e.AddOutputFlag(cmd)
	return cmd
}

func verify(ctx context.Context, e *cli.Env, topic smq.Topic, storeURL string) error {
	logger, err := e.Logger(slog.LevelError)
	if err != nil {
		return err
	}
	if storeURL == "" {
		if storeURL, err = findStore(ctx, e); err != nil {
			return err
		}
	}
	st, err := node.OpenStore(ctx, storeURL, logger)
	if err != nil {
		return err
	}
	defer st.Close() // only read
	var read atomic.Int64
	progress := e.StartProgress(false, func() cli.ProgressState {
		return cli.ProgressState{Done: read.Load(), Text: "verified of " + topic.String()}
	})
	done, err := catalog.Verify(ctx, st, topic, func(r seglog.Report) {
		read.Add(int64(r.Bytes))
		if e.Flags.Verbose {
			e.Infof("%v: %s, %s, %s", r.Ident, smq.Count(r.Chunks, "chunk"), smq.Count(r.Messages, "message"), smq.Count(len(r.Problems), "problem"))
		}
	})
	progress.Stop()
	if errors.Is(err, smq.ErrNotFound) && done.Config.ID == "" {
		return noLog(ctx, st, storeURL, topic, err)
	}
	if err != nil {
		return err
	}
	return printVerification(e, viewVerification(topic, done))
}

// noLog tells a store without the topic from a place that holds no store.
func noLog(ctx context.Context, st store.Store, storeURL string, topic smq.Topic, err error) error {
	if entries, listErr := st.List(ctx, "/", "", 1); listErr == nil && len(entries) == 0 {
		return fmt.Errorf("store %s: %w: nothing is stored there; smq-admin master status shows where the cluster stores", storeURL, smq.ErrNotFound)
	}
	return connect.NoTopic(ctx, nil, err, topic)
}

func printVerification(e *cli.Env, view verificationView) error {
	err := verificationColumns.One(e, view, func() error {
		for _, problem := range view.Problems {
			if _, err := fmt.Fprintln(e.Stdout, "problem:", problem); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && len(view.Problems) > 0 {
		err = fmt.Errorf("topic %s: %w: %s", view.Topic, smq.ErrCorrupt, smq.Count(len(view.Problems), "problem"))
	}
	return err
}

// findStore asks the masters for the URL of the store.
func findStore(ctx context.Context, e *cli.Env) (string, error) {
	var url string
	err := withClient(ctx, e, func(ctx context.Context, c *client.Client) error {
		info, err := c.Cluster(ctx)
		url = info.GetStore()
		return err
	})
	return url, err
}
