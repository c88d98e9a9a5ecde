package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/command/broker"
	"github.com/seaweedmq/smq/lib/command/daemon"
	"github.com/seaweedmq/smq/lib/command/local"
	"github.com/seaweedmq/smq/lib/command/node"
	"github.com/seaweedmq/smq/lib/command/scaling"
	"github.com/seaweedmq/smq/lib/layout"
	"github.com/seaweedmq/smq/lib/smq"
)

// upOptions are the flags of smq-admin up.
type upOptions struct {
	brokers  int
	listen   string
	http     string
	store    string
	data     string
	memory   cli.Size
	drain    cli.Duration
	scaling  scaling.Flags
	addrFile string
	pprof    bool
}

func newUp(e *cli.Env) *cobra.Command {
	o := &upOptions{memory: broker.DefaultMemory, drain: cli.Duration(broker.DefaultDrainTimeout)}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run a whole cluster on this machine",
		Long: `Run a whole cluster in this process: a master and some brokers. What is published
is kept: in a directory below --data, or in the store that --store names. Run it
again with the same ones and everything is there.

SIGINT and SIGTERM stop it in good order, with success; a second one stops it at
once, which loses nothing that is acked either: the brokers are one process, so
here an ack means that a message is stored, but for topics made with --replicas.`,
		Example: `  smq-admin up --brokers 3
  smq-admin up --store seaweedfs://127.0.0.1:8888/smq
  smq-admin up --listen 127.0.0.1:0 --addr-file cluster.addr`,
		Args: cli.Args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			policy, err := o.scaling.Policy(cmd.Flags())
			if err != nil {
				return err
			}
			return up(cmd.Context(), e, o, policy)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.brokers, "brokers", 1, "run `N` brokers")
	f.StringVar(&o.listen, "listen", cli.DefaultMaster, "`HOST:PORT` of the master; the brokers take free ports")
	f.StringVar(&o.http, "http", daemon.Off, "`HOST:PORT` for /metrics, /healthz and /readyz, or off")
	f.StringVar(&o.store, "store", "", "`URL` of the store (default: a directory below --data)")
	f.StringVar(&o.data, "data", "", "`DIR` for everything else (default $XDG_DATA_HOME/smq)")
	f.Var(&o.memory, "memory", "of each broker, a bound for buffers and cache")
	f.Var(&o.drain, "drain-timeout", "how long a stop in good order may take")
	f.StringVar(&o.addrFile, "addr-file", "", "write the addresses to `FILE` once ready (JSON if it ends in .json)")
	f.BoolVar(&o.pprof, "pprof", false, "serve /debug/pprof by HTTP too")
	o.scaling.RegisterDefaults(cmd)
	e.AddLogFlag(cmd)
	return cmd
}

// upTimeout bounds the start of a cluster, so that one that cannot start says
// so.
const upTimeout = time.Minute

func up(ctx context.Context, e *cli.Env, o *upOptions, policy layout.Policy) error {
	if o.brokers < 1 {
		return cli.Usagef("--brokers %d: the least is 1", o.brokers)
	}
	if err := broker.CheckMemory(o.memory); err != nil {
		return err
	}
	logger, err := e.Logger(slog.LevelWarn)
	if err != nil {
		return err
	}
	masterLogger, err := e.Logger(slog.LevelError)
	if err != nil {
		return err
	}
	data, err := dataDir(e, o.data)
	if err != nil {
		return err
	}
	listener, err := daemon.Listen("listen", o.listen)
	if err != nil {
		return err
	}
	defer listener.Close() // it may be closed already
	var http net.Listener
	if o.http != daemon.Off {
		if http, err = daemon.Listen("http", o.http); err != nil {
			return err
		}
	}
	node.LimitMemory(e.Getenv, int64(o.brokers)*int64(o.memory))
	registry := daemon.NewRegistry()
	cluster, err := startLocal(ctx, local.Options{
		Listener: listener, Brokers: o.brokers, StoreURL: o.store, DataDir: data,
		Memory: int64(o.memory), Scaling: policy, Logger: logger, MasterLogger: masterLogger.With("part", "master"), Registerer: registry,
	})
	if errors.Is(err, smq.ErrConflict) {
		err = fmt.Errorf("%w; stop that one first, or give this one a --data and a --store of its own", err)
	}
	if err != nil {
		return err
	}
	endpoints := daemon.Endpoints{Metrics: registry, Ready: func() error { return clusterHealth(cluster.Brokers) }, Pprof: o.pprof, Logger: logger}
	defer endpoints.Serve(http)()
	ready := make(chan struct{})
	close(ready)
	err = daemon.Process{
		Name: "cluster", Logger: logger, Ready: ready, Failed: cluster.Master.Done(), Err: cluster.Master.Err,
		AddrFile: o.addrFile, Addresses: addresses(cluster, http), OnReady: func() { announce(e, cluster, data) },
		Stop: cluster.Stop, StopTimeout: time.Duration(o.drain),
	}.Run(ctx)
	if err == nil {
		e.Infof("stopped; everything is kept in %s", cluster.Master.Info().GetStore())
	}
	return err
}

func startLocal(ctx context.Context, o local.Options) (*local.Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, upTimeout)
	defer cancel()
	return local.Start(ctx, o)
}

// dataDir is the folder for what a cluster keeps on this machine.
func dataDir(e *cli.Env, given string) (string, error) {
	if given == "" {
		base := e.Getenv("XDG_DATA_HOME")
		if base == "" {
			home := e.Getenv("HOME")
			if home == "" {
				return "", cli.Usagef("--data DIR is missing, and there is no home directory for a default")
			}
			base = filepath.Join(home, ".local", "share")
		}
		given = filepath.Join(base, "smq")
	}
	path, err := filepath.Abs(given)
	if err == nil {
		err = os.MkdirAll(path, 0o755)
	}
	if err != nil {
		return "", fmt.Errorf("data directory: %w", err)
	}
	return path, nil
}

// announce tells where to point commands.
func announce(e *cli.Env, c *local.Cluster, data string) {
	e.Infof("a cluster of %s is up; messages are kept in %s, the rest in %s", smq.Count(len(c.Brokers), "broker"), c.Master.Info().GetStore(), data)
	if c.Address == cli.DefaultMaster {
		e.Infof("smq-pub, smq-sub and smq-admin find it by themselves")
	} else {
		e.Infof("point commands to it: export SMQ_MASTER=%s", c.Address)
	}
}

func addresses(c *local.Cluster, http net.Listener) []daemon.Address {
	all := []daemon.Address{{Name: "master", Value: c.Address}, {Name: "http", Value: daemon.Bound(http)}}
	for i, b := range c.Brokers {
		all = append(all, daemon.Address{Name: fmt.Sprintf("broker%d", i+1), Value: b.Address()})
	}
	return all
}

// clusterHealth is what is wrong with any of the brokers.
func clusterHealth(brokers []*node.Broker) error {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	var wrong []error
	for _, b := range brokers {
		if err := b.Health(ctx); err != nil {
			wrong = append(wrong, fmt.Errorf("broker %s: %w", b.Address(), err))
		}
	}
	return errors.Join(wrong...)
}
