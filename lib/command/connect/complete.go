package connect

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/smq"
)

// completionTimeout bounds how long a shell waits for completions.
const completionTimeout = 2 * time.Second

// CompleteWords makes a flag complete to fixed words.
func CompleteWords(cmd *cobra.Command, flag string, words ...string) {
	CompleteFlag(cmd, flag, cli.Words(words...))
}

// CompleteFlag makes a flag complete in the way of complete.
func CompleteFlag(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // the flag does not exist: a mistake in this program
	}
}

// CompleteTopics completes every argument to the names of topics, but for those
// that stand there already.
func CompleteTopics(e *cli.Env) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		return without(ask(cmd, e, topics), args), cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteTopic completes the first argument to the names of topics, and no other.
func CompleteTopic(e *cli.Env) cobra.CompletionFunc { return OnlyFirst(CompleteTopics(e)) }

// CompleteFirstTopic completes the first argument to the names of topics, and
// the others to files.
func CompleteFirstTopic(e *cli.Env) cobra.CompletionFunc {
	complete := CompleteTopics(e)
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return complete(cmd, args, word)
	}
}

// CompleteNamespaces completes to the namespaces that have topics.
func CompleteNamespaces(e *cli.Env) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		var names []string
		for _, name := range ask(cmd, e, topics) {
			if t, err := smq.ParseTopic(name); err == nil {
				names = append(names, t.Namespace)
			}
		}
		slices.Sort(names)
		return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteSegments completes the first argument to the names of topics, and those
// after it, as many as most if that is not 0, to the live segments of that topic.
func CompleteSegments(e *cli.Env, most int) cobra.CompletionFunc {
	first := CompleteTopics(e)
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return first(cmd, args, word)
		}
		topic, err := smq.ParseTopic(args[0])
		if err != nil || most > 0 && len(args) > most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		found := ask(cmd, e, func(ctx context.Context, c *client.Client) []string { return segments(ctx, c, topic) })
		return without(found, args[1:]), cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteBrokers completes the only argument to the ids of brokers, or to their
// addresses when it begins like one.
func CompleteBrokers(e *cli.Env) cobra.CompletionFunc {
	return OnlyFirst(func(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		found := ask(cmd, e, func(ctx context.Context, c *client.Client) []string { return brokers(ctx, c, word) })
		return found, cobra.ShellCompDirectiveNoFileComp
	})
}

// CompleteMasters completes the only argument to the addresses of the masters.
func CompleteMasters(e *cli.Env) cobra.CompletionFunc {
	return OnlyFirst(func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return ask(cmd, e, masters), cobra.ShellCompDirectiveNoFileComp
	})
}

// OnlyFirst completes the first argument in the way of complete, and no other.
func OnlyFirst(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, word)
	}
}

// without leaves out what is given already; descriptions, behind a tab, do not count.
func without(found, given []string) []string {
	return slices.DeleteFunc(found, func(s string) bool {
		word, _, _ := strings.Cut(s, "\t")
		return slices.Contains(given, word)
	})
}

// ask asks the cluster, and offers nothing when it does not answer.
func ask(cmd *cobra.Command, e *cli.Env, question func(context.Context, *client.Client) []string) []string {
	if err := e.Configure(cmd); err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	c, err := client.Connect(ctx, client.Config{Masters: e.Flags.Masters})
	if err != nil {
		return nil
	}
	defer c.Close() // nothing is under way
	return question(ctx, c)
}

func topics(ctx context.Context, c *client.Client) []string {
	var names []string
	for t, err := range c.ListTopics(ctx, "", client.ListOptions{NamesOnly: true}) {
		if t == nil {
			break
		}
		if err == nil { // else it is damaged, and of no use
			names = append(names, t.GetConfig().GetTopic())
		}
	}
	return names
}

func segments(ctx context.Context, c *client.Client, topic smq.Topic) []string {
	d, err := c.DescribeTopic(ctx, topic)
	if err != nil {
		return nil
	}
	var ids []string
	for _, s := range d.GetLayout().GetSegments() {
		owner := "no owner"
		if s.GetOwnerAddress() != "" {
			owner = "at " + s.GetOwnerAddress()
		}
		ids = append(ids, strconv.FormatUint(s.GetId(), 10)+"\t"+smq.Range{Lo: s.GetLo(), Hi: s.GetHi()}.String()+" "+owner)
	}
	return ids
}

func brokers(ctx context.Context, c *client.Client, word string) []string {
	info, err := c.Cluster(ctx)
	if err != nil {
		return nil
	}
	var found []string
	for _, b := range info.GetBrokers() {
		found = append(found, b.GetId()+"\t"+b.GetAddress())
		if word != "" && strings.HasPrefix(b.GetAddress(), word) {
			found = append(found, b.GetAddress()+"\t"+b.GetId())
		}
	}
	return found
}

func masters(ctx context.Context, c *client.Client) []string {
	info, err := c.Cluster(ctx)
	if err != nil {
		return nil
	}
	var found []string
	for _, m := range info.GetMasters() {
		found = append(found, m.GetAddress()+"\t"+m.GetId())
	}
	return found
}
