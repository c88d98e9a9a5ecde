package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/command/connect"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

func newMasterAdd(e *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add ADDRESS",
		Short: "Add a master that waits to join",
		Long: `Make a master that was started with --join and an empty --data a member of the
group, with a vote. ADDRESS is the one that it serves gRPC on. It gets its vote
when it has shown that it keeps up; if it does not, nothing has changed.

To replace a master that is lost, remove it first, then add the new one. Three
masters go on when one is lost, and five when two are; four do no better than
three. A master that runs by itself is restarted with --peers and --raft, both its
own raft address, before others can be added.`,
		Example: "  smq-master --join --raft d:7301 --listen d:7300 --data /var/lib/smq/master   # on host d\n  smq-admin master add d:7300",
		Args:    cli.Args("ADDRESS"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return atLeadingMaster(cmd.Context(), e, "add master "+args[0], func(ctx context.Context, m smqpb.MasterClient, tries int) error {
				resp, err := m.AddMaster(ctx, &smqpb.AddMasterRequest{Address: args[0]})
				switch {
				case err != nil:
					return err
				case resp.GetChanged() || tries > 1:
					e.Infof("master %s is a member now; %s", args[0], strength(resp.GetMasters()))
				default:
					e.Infof("master %s is a member already; %s", args[0], strength(resp.GetMasters()))
				}
				return nil
			})
		},
	}
	return cmd
}

func newMasterRemove(e *cli.Env) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "remove ADDRESS",
		Short: "Remove a master, live or dead, from the group",
		Long: `Take a master out of the group; ADDRESS is its gRPC or its raft address, as smq-admin
master status shows them. One that runs ends by itself, and its --data is of no
use any more. The leading master hands over first.

It is refused when the masters left would have no majority, as far as they
answer. It is also refused when they could lose one now and could not then;
--force does it all the same.`,
		Example: "  smq-admin master remove a:7300\n  smq-admin master status",
		Args:    cli.Args("ADDRESS"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return atLeadingMaster(cmd.Context(), e, "remove master "+args[0], func(ctx context.Context, m smqpb.MasterClient, tries int) error {
				resp, err := m.RemoveMaster(ctx, &smqpb.RemoveMasterRequest{Id: args[0], Force: force})
				switch {
				case err != nil:
					return err
				case resp.GetChanged() || tries > 1:
					e.Infof("master %s is removed; %s", args[0], strength(resp.GetMasters()))
				default:
					e.Infof("there is no master %s; %s", args[0], strength(resp.GetMasters()))
				}
				if n := voters(resp.GetMasters()); n == 2 {
					e.Warnf("of the %d masters left none may be lost; add another one", n)
				}
				return nil
			})
		},
		ValidArgsFunction: connect.CompleteMasters(e),
	}
	cmd.Flags().BoolVar(&force, "force", false, "also when no further master could be lost then")
	return cmd
}

// strength says how many masters there are, and what that is worth.
func strength(masters []*smqpb.MasterInfo) string {
	switch n := voters(masters); n {
	case 1:
		return "there is one"
	default:
		return fmt.Sprintf("there are %d, of which %d may be lost", n, (n-1)/2)
	}
}

// voters counts the masters that have a vote.
func voters(masters []*smqpb.MasterInfo) (n int) {
	for _, m := range masters {
		if m.GetVoter() {
			n++
		}
	}
	return n
}

// atLeadingMaster has the leading master do what is told by what, within
// --timeout: again while it turns out that another one leads, or none.
func atLeadingMaster(ctx context.Context, e *cli.Env, what string, do func(ctx context.Context, m smqpb.MasterClient, tries int) error) error {
	ctx, cancel := e.WithTimeout(ctx)
	defer cancel()
	conns := rpc.NewConns(rpc.DialOptions{})
	defer conns.Close()
	cluster := rpc.NewCluster(e.Flags.Masters, conns, slog.New(slog.DiscardHandler))
	var last error
	for tries := 1; ; tries++ {
		m, _, err := cluster.Master(ctx)
		if err == nil {
			err = do(ctx, m, tries)
		}
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil && last != nil:
			return fmt.Errorf("%s: %w", what, last) // the end of the time says less
		case ctx.Err() != nil, !errors.Is(err, smq.ErrNotLeader) && !errors.Is(err, smq.ErrUnavailable):
			return refused(what, err)
		}
		last = err
		select {
		case <-time.After(masterAgain):
		case <-ctx.Done():
		}
	}
}

// masterAgain is the wait before the leading master is looked for again.
const masterAgain = 200 * time.Millisecond

// refused says what failed, unless the master has said so.
func refused(what string, err error) error {
	if strings.HasPrefix(err.Error(), what) {
		return err
	}
	return fmt.Errorf("%s: %w", what, err)
}
