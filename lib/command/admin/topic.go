package admin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/command/connect"
	"github.com/seaweedmq/smq/lib/command/scaling"
	"github.com/seaweedmq/smq/lib/smq"
)

func newTopic(e *cli.Env) *cobra.Command {
	return group("topic", "Create, list, describe, alter, split and delete topics",
		newTopicCreate(e), newTopicList(e), newTopicDescribe(e), newTopicAlter(e), newTopicDelete(e),
		newTopicSplit(e), newTopicMerge(e), newTopicHistory(e))
}

func newTopicCreate(e *cli.Env) *cobra.Command {
	var options client.TopicOptions
	var flags scaling.Flags
	var ifNotExists bool
	cmd := &cobra.Command{
		Use:   "create TOPIC…",
		Short: "Create topics",
		Long: `Create topics. The number of partitions and what the partition key is stay as
they are for the topic's life; the rest can be altered. What no flag names is the
cluster's default.`,
		Example: `  smq-admin topic create orders --partitions 128
  smq-admin topic create orders --split-above 20MB/s --split-above 50000msg/s --max-segments 16
  smq-admin topic create clicks --key json:user.id --if-not-exists`,
		Args: cli.Args("TOPIC…"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("partitions") && (options.Partitions < 1 || options.Partitions > smq.MaxPartitions) {
				return cli.Usagef("--partitions %d: a topic has 1 to %d", options.Partitions, smq.MaxPartitions)
			}
			topics, err := parseTopics(args)
			if err != nil {
				return err
			}
			if options.Scaling, err = flags.Parse(cmd.Flags()); err != nil {
				return err
			}
			if err := checkReplicas(cmd.Flags(), options.Replicas); err != nil {
				return err
			}
			return withClient(cmd.Context(), e, func(ctx context.Context, c *client.Client) error {
				return createTopics(ctx, e, c, topics, options, ifNotExists, cmd.Flags().Changed("partitions"))
			})
		},
	}
	cmd.Flags().Int32Var(&options.Partitions, "partitions", smq.DefaultPartitions, "`N` partitions, 1 to 1000000")
	cmd.Flags().StringVar(&options.Key, "key", "key", "`SOURCE` of the partition key: key, header:NAME or json:PATH")
	cmd.Flags().Int32Var(&options.Replicas, "replicas", 0, "`N` brokers hold what is not stored yet, 1 to 5, if so many live (default 2)")
	flags.Register(cmd)
	cmd.Flags().BoolVar(&ifNotExists, "if-not-exists", false, "a topic that exists is a success")
	return cmd
}

// parseTopics reads names; one that is there twice counts once.
func parseTopics(args []string) ([]smq.Topic, error) {
	var topics []smq.Topic
	for _, arg := range args {
		t, err := smq.ParseTopic(arg)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(topics, t) {
			topics = append(topics, t)
		}
	}
	return topics, nil
}

// createTopics goes on past topics that exist, and fails because of them at the
// end. Any other failure ends it: the next topic would fail likewise.
func createTopics(ctx context.Context, e *cli.Env, c *client.Client, topics []smq.Topic, options client.TopicOptions, ifNotExists, counted bool) error {
	var there []error
	for _, topic := range topics {
		err := createTopic(ctx, e, c, topic, options)
		switch {
		case errors.Is(err, smq.ErrExists) && ifNotExists:
			e.Infof("topic %s exists", topic)
			if counted {
				connect.WarnOfPartitions(ctx, e, c, topic, options.Partitions)
			}
		case errors.Is(err, smq.ErrExists):
			there = append(there, fmt.Errorf("topic %s: %w", topic, smq.ErrExists))
		case err != nil:
			return errors.Join(append(there, err)...)
		}
	}
	if there == nil {
		return nil
	}
	return fmt.Errorf("%w; --if-not-exists takes what is there as it is", errors.Join(there...))
}

func createTopic(ctx context.Context, e *cli.Env, c *client.Client, topic smq.Topic, options client.TopicOptions) error {
	config, err := c.CreateTopic(ctx, topic, options)
	if err != nil {
		return err
	}
	e.Infof("created topic %s with %s", topic, smq.Count(config.GetPartitions(), "partition"))
	return nil
}

func newTopicList(e *cli.Env) *cobra.Command {
	var namespace string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List topics",
		Long: `List topics. One of which a file in the store is damaged is named on standard error,
with the file, and in JSON and YAML is listed with the error; the exit code is 1 then.`,
		Example: "  smq-admin topic list -o name\n  smq-admin topic list --namespace shop -o json",
		Args:    cli.Args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkNamespace(namespace); err != nil {
				return err
			}
			return withClient(cmd.Context(), e, func(ctx context.Context, c *client.Client) error {
				return listTopics(ctx, e, c, namespace)
			})
		},
	}
	cmd.Flags().StringVar(&namespace, "namespace", "", "only topics of this `NAMESPACE`")
	connect.CompleteFlag(cmd, "namespace", connect.CompleteNamespaces(e))
	e.AddOutputFlag(cmd)
	return cmd
}

// listTopics lists topics. Those that are damaged are told of on standard error,
// and in documents.
func listTopics(ctx context.Context, e *cli.Env, c *client.Client, namespace string) error {
	var topics []topicView
	var damaged []error
	options := client.ListOptions{NamesOnly: e.Flags.Output == cli.FormatName}
	for t, err := range c.ListTopics(ctx, namespace, options) {
		switch {
		case t == nil:
			return err
		case err != nil:
			damaged = append(damaged, err)
			if !forPrograms(e) {
				continue
			}
		}
		topics = append(topics, viewSummary(t, err))
	}
	if err := topicColumns.List(e, topics); err != nil {
		return err
	}
	return damageVerdict(e, "topic", damaged)
}

// checkNamespace refuses what can be no namespace; empty stands for all.
func checkNamespace(namespace string) error {
	if namespace == "" {
		return nil
	}
	if _, err := smq.ParseTopic(namespace + "/x"); err != nil {
		return cli.Usagef("--namespace %q: use letters, digits, '_', '-', and '.' but not first", namespace)
	}
	return nil
}

func newTopicDescribe(e *cli.Env) *cobra.Command {
	var offsets bool
	cmd := &cobra.Command{
		Use:     "describe TOPIC",
		Short:   "Show a topic, its live segments and what they take in",
		Example: "  smq-admin topic describe orders\n  smq-admin topic describe orders --offsets -o json",
		Args:    cli.Args("TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error {
			topic, err := smq.ParseTopic(args[0])
			if err != nil {
				return err
			}
			return withClient(cmd.Context(), e, func(ctx context.Context, c *client.Client) error {
				return describeTopic(ctx, e, c, topic, offsets)
			})
		},
		ValidArgsFunction: connect.CompleteTopic(e),
	}
	cmd.Flags().BoolVar(&offsets, "offsets", false, "show every partition's offsets and the number of messages")
	e.AddOutputFlag(cmd)
	return cmd
}

func describeTopic(ctx context.Context, e *cli.Env, c *client.Client, topic smq.Topic, offsets bool) error {
	d, err := c.DescribeTopic(ctx, topic)
	if err != nil {
		return connect.NoTopic(ctx, c, err, topic)
	}
	view := viewDescription(d)
	load, cluster := loads(ctx, e, c, topic)
	view.addLoads(load)
	view.addPresence(cluster)
	if offsets {
		if err := view.addOffsets(ctx, c, topic); err != nil {
			return err
		}
	}
	return describedColumns.One(e, view, func() error {
		if _, err := fmt.Fprintln(e.Stdout); err != nil {
			return err
		}
		if err := layoutColumns.Table(e, view.Segments); err != nil {
			return err
		}
		for _, note := range view.Notes {
			if _, err := fmt.Fprintf(e.Stdout, "note: %s\n", note); err != nil {
				return err
			}
		}
		if !offsets {
			return nil
		}
		if _, err := fmt.Fprintln(e.Stdout); err != nil {
			return err
		}
		return offsetColumns.Table(e, view.Offsets)
	})
}

func newTopicDelete(e *cli.Env) *cobra.Command {
	var confirm string
	var ifExists bool
	cmd := &cobra.Command{
		Use:   "delete TOPIC",
		Short: "Delete a topic with all its messages",
		Long: `Delete a topic with all its messages. The topic's name must be given again: typed
when asked for it, or with --confirm.`,
		Example: "  smq-admin topic delete orders\n  smq-admin topic delete orders --confirm orders",
		Args:    cli.Args("TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error {
			topic, err := smq.ParseTopic(args[0])
			if err != nil {
				return err
			}
			return withClientUntimed(cmd.Context(), e, func(ctx context.Context, c *client.Client) error {
				return deleteTopic(ctx, e, c, topic, confirm, cmd.Flags().Changed("confirm"), ifExists)
			})
		},
		ValidArgsFunction: connect.CompleteTopic(e),
	}
	cmd.Flags().StringVar(&confirm, "confirm", "", "the `NAME` of the topic once more, instead of being asked for it")
	cli.MayBeEmpty(cmd.Flags(), "confirm")
	connect.CompleteFlag(cmd, "confirm", completeGiven)
	cmd.Flags().BoolVar(&ifExists, "if-exists", false, "a topic that does not exist is a success")
	return cmd
}

// completeGiven completes to what the argument is.
func completeGiven(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return args[:min(len(args), 1)], cobra.ShellCompDirectiveNoFileComp
}

func deleteTopic(ctx context.Context, e *cli.Env, c *client.Client, topic smq.Topic, confirm string, confirmed, ifExists bool) error {
	looking, cancel := e.WithTimeout(ctx)
	defer cancel()
	d, err := c.DescribeTopic(looking, topic)
	if errors.Is(err, smq.ErrNotFound) && ifExists {
		e.Infof("topic %s does not exist", topic)
		return nil
	}
	if err != nil {
		return connect.NoTopic(ctx, c, err, topic)
	}
	if !confirmed {
		question := fmt.Sprintf("Delete topic %s (%s) with all its messages? Type its name: ", topic, smq.Count(d.GetConfig().GetPartitions(), "partition"))
		if confirm, err = ask(ctx, e, question); err != nil {
			return err
		}
	}
	if confirm != topic.String() && confirm != topic.Namespace+"/"+topic.Name {
		return cli.Exit(cli.ExitRefused, fmt.Errorf("topic %s is not deleted: the name was not confirmed (%q)", topic, confirm))
	}
	deleting, cancel := e.WithTimeout(ctx)
	defer cancel()
	if err := c.DeleteTopic(deleting, topic); err != nil {
		return connect.NoTopic(ctx, c, err, topic)
	}
	e.Infof("deleted topic %s", topic)
	return nil
}

// ask prints a question on standard error and reads the line that answers it.
func ask(ctx context.Context, e *cli.Env, question string) (string, error) {
	if e.StdinTerminal {
		fmt.Fprint(e.Stderr, question)
	}
	type answer struct {
		line string
		err  error
	}
	answers := make(chan answer, 1) // the goroutine may stay behind in Read
	go func() {
		line, err := bufio.NewReader(e.Stdin).ReadString('\n')
		answers <- answer{line, err}
	}()
	select {
	case a := <-answers:
		if a.line == "" && a.err != nil && !e.StdinTerminal {
			return "", cli.Exit(cli.ExitRefused, errors.New("nobody is there to confirm it; use --confirm NAME"))
		}
		return strings.TrimSpace(a.line), nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
