// Package broker is smq-broker, the daemon that takes messages in and serves
// them.
package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/command/daemon"
	"github.com/seaweedmq/smq/lib/command/node"
	"github.com/seaweedmq/smq/lib/command/scaling"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
)

const long = `Run a broker: it takes messages in, puts them into the store and serves them out
of it. It has no disk of its own, and learns from the masters which store there
is; it waits for them as long as they are not there.

It listens on this machine only, unless --listen and --http say otherwise: there
is no authentication yet. SIGTERM drains it: its segments move to other brokers,
then it ends, with success; a second one stops it at once, as if it were killed.
Nothing that is acked depends on it.

Any broker may be named the leader. --replicas, --scaling and what follows it are for
topics that do not say otherwise, while it leads: give them to all brokers alike.

` + cli.ExitCodes

const examples = `  smq-broker --master a:7300,b:7300,c:7300 --listen :7310
  smq-broker --listen :7320 --http :7322 --memory 2GiB --rack r2
  smq-broker --listen 127.0.0.1:0 --http off --addr-file broker.addr`

// options are the flags of smq-broker.
type options struct {
	listen, advertise, http string
	rack                    string
	replicas                int
	scaling                 scaling.Flags
	memory                  cli.Size
	drain                   cli.Duration
	addrFile                string
	pprof                   bool
}

// New is the command tree of smq-broker.
func New(e *cli.Env) *cobra.Command {
	o := &options{memory: DefaultMemory, drain: cli.Duration(DefaultDrainTimeout)}
	cmd := &cobra.Command{
		Use:     "smq-broker",
		Short:   "Run a broker",
		Long:    long,
		Example: examples,
		Args:    cli.Args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			policy, err := o.scaling.Policy(cmd.Flags())
			if err != nil {
				return err
			}
			return run(cmd.Context(), e, o, policy)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:7310", "`HOST:PORT` to serve gRPC on; port 0: any that is free")
	f.StringVar(&o.advertise, "advertise", "", "`HOST[:PORT]` by which others reach it (default: where it listens)")
	f.StringVar(&o.http, "http", "127.0.0.1:7312", "`HOST:PORT` for /metrics, /healthz and /readyz, or off")
	f.StringVar(&o.rack, "rack", "", "`NAME` of what fails together with it")
	f.Var(&o.memory, "memory", "bound for buffers and cache")
	f.IntVar(&o.replicas, "replicas", catalog.DefaultReplicas, "when it leads: `N` brokers hold what is not stored yet of topics that do not say")
	f.Var(&o.drain, "drain-timeout", "on SIGTERM, how long segments may take to move")
	f.StringVar(&o.addrFile, "addr-file", "", "write the addresses to `FILE` once ready (JSON if it ends in .json)")
	f.BoolVar(&o.pprof, "pprof", false, "serve /debug/pprof by HTTP too")
	o.scaling.RegisterDefaults(cmd)
	e.AddMasterFlag(cmd)
	e.AddTimeoutFlag(cmd, 0, "give up when it is not ready after this long (default: never)")
	e.AddLogFlag(cmd)
	e.AddCommonFlags(cmd)
	return cmd
}

// Defaults of flags, for those who start brokers otherwise too.
const (
	DefaultMemory       = 256 << 20
	DefaultDrainTimeout = 30 * time.Second
)

// minMemory is the least with which a broker can work: batches of the largest
// size must fit into its half for buffers several times.
const minMemory = 128 << 20

// CheckMemory refuses a value of --memory with which a broker cannot work.
func CheckMemory(memory cli.Size) error {
	if memory < minMemory {
		return cli.Usagef("--memory %v: the least is %s", &memory, cli.FormatSize(minMemory))
	}
	return nil
}

func run(ctx context.Context, e *cli.Env, o *options, policy layout.Policy) error {
	if err := CheckMemory(o.memory); err != nil {
		return err
	}
	if o.replicas < 1 || o.replicas > catalog.MaxReplicas {
		return cli.Usagef("--replicas %d: it must be between 1 and %d", o.replicas, catalog.MaxReplicas)
	}
	logger, err := e.Logger(slog.LevelInfo)
	if err != nil {
		return err
	}
	grpc, err := daemon.Listen("listen", o.listen)
	if err != nil {
		return err
	}
	defer grpc.Close() // it may be closed already
	advertise, err := daemon.Advertise(grpc, o.advertise)
	if err != nil {
		return err
	}
	var http net.Listener
	httpAddress := ""
	if o.http != daemon.Off {
		if http, err = daemon.Listen("http", o.http); err != nil {
			return err
		}
		if httpAddress, err = daemon.Advertise(http, ""); err != nil {
			return err
		}
	}
	node.LimitMemory(e.Getenv, int64(o.memory))
	registry := daemon.NewRegistry()
	var running atomic.Pointer[node.Broker]
	endpoints := daemon.Endpoints{Metrics: registry, Ready: func() error { return health(running.Load()) }, Pprof: o.pprof, Logger: logger}
	stopHTTP := endpoints.Serve(http)
	defer stopHTTP()

	b, err := start(ctx, e, node.BrokerOptions{
		Masters: e.Flags.Masters, Listener: grpc, Advertise: advertise, HTTPAddress: httpAddress,
		Rack: o.rack, Memory: int64(o.memory), Replicas: o.replicas, Scaling: policy, Logger: logger, Registerer: registry,
	})
	if err != nil {
		return unlessSignalled(ctx, err)
	}
	running.Store(b)
	ready := make(chan struct{})
	close(ready) // it has joined
	return daemon.Process{
		Name: "broker", Logger: logger, Ready: ready, Finished: b.Drained(), AddrFile: o.addrFile,
		Addresses: []daemon.Address{{Name: "grpc", Value: advertise}, {Name: "http", Value: httpAddress}},
		Stop:      b.Stop, StopTimeout: time.Duration(o.drain),
	}.Run(ctx)
}

// start waits until the broker has joined, at most for --timeout.
func start(ctx context.Context, e *cli.Env, o node.BrokerOptions) (*node.Broker, error) {
	ctx, cancel := e.WithTimeout(ctx)
	defer cancel()
	o.Logger.Info("joining", "masters", o.Masters, "address", o.Advertise)
	return node.StartBroker(ctx, o)
}

// unlessSignalled makes a success of a start that a signal ended: there was
// nothing yet to stop.
func unlessSignalled(ctx context.Context, err error) error {
	var signalled *cli.SignalError
	if errors.As(context.Cause(ctx), &signalled) {
		return nil
	}
	return err
}

// healthTimeout bounds an answer to /readyz.
const healthTimeout = 5 * time.Second

func health(b *node.Broker) error {
	if b == nil {
		return fmt.Errorf("%w: it has not joined the cluster yet", smq.ErrUnavailable)
	}
	ctx, cancel := context.WithTimeout(context.Background(), healthTimeout)
	defer cancel()
	return b.Health(ctx)
}
