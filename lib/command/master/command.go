// Package master is smq-master, the daemon that registers brokers and names the
// one that leads.
package master

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/command/daemon"
	"github.com/seaweedmq/smq/lib/command/node"
	"github.com/seaweedmq/smq/lib/master"
	"github.com/seaweedmq/smq/lib/smq"
)

const long = `Run a master: it registers the brokers, names the one that leads, and tells
clients where everything is. No message passes through it.

One master is enough; three (or five) go on when one (or two) are lost. Each is
given the same list of all their raft addresses, and its own one of them:

  smq-master --peers a:7301,b:7301,c:7301 --raft a:7301 --listen a:7300 …

One more is started with --join and an empty --data, and waits until it is added:

  smq-master --join --raft d:7301 --listen d:7300 --data …
  smq-admin master add d:7300

It listens on this machine only, unless --listen, --http and --raft say
otherwise: there is no authentication yet. SIGTERM stops it in good order, with
success; a second one stops it at once.

` + cli.ExitCodes

const examples = `  smq-master --store dir:///var/lib/smq/store --data /var/lib/smq/master
  smq-master --store seaweedfs://filer:8888/smq --data /var/lib/smq/master --listen :7300
  smq-master --listen 127.0.0.1:0 --http off --addr-file master.addr --store … --data …`

// options are the flags of smq-master.
type options struct {
	listen, advertise, http string
	raft, raftListen        string
	peers                   []string
	join                    bool
	store, data             string
	addrFile                string
	pprof                   bool
}

// New is the command tree of smq-master.
func New(e *cli.Env) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:     "smq-master",
		Short:   "Run a master",
		Long:    long,
		Example: examples,
		Args:    cli.Args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return run(cmd.Context(), e, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.store, "store", "", "`URL` of the store: dir:///PATH or seaweedfs://FILER:PORT/PATH; fixed when the cluster is founded")
	f.StringVar(&o.data, "data", "", "`DIR` for the master's own state")
	f.StringVar(&o.listen, "listen", "127.0.0.1:7300", "`HOST:PORT` to serve gRPC on; port 0: any that is free")
	f.StringVar(&o.advertise, "advertise", "", "`HOST[:PORT]` by which others reach it (default: where it listens)")
	f.StringVar(&o.http, "http", "127.0.0.1:7302", "`HOST:PORT` for /metrics, /healthz and /readyz, or off")
	f.StringSliceVar(&o.peers, "peers", nil, "raft addresses of all masters, this one's too, `HOST:PORT,...` (default: it is alone)")
	f.BoolVar(&o.join, "join", false, "wait to be added to masters that run (smq-admin master add) instead of founding a cluster")
	f.StringVar(&o.raft, "raft", "127.0.0.1:7301", "this master's raft address, `HOST:PORT`: one of --peers, or its own with --join")
	f.StringVar(&o.raftListen, "raft-listen", "", "`HOST:PORT` to listen on for raft (default: the one of --raft; another one behind a proxy)")
	f.StringVar(&o.addrFile, "addr-file", "", "write the addresses to `FILE` once ready (JSON if it ends in .json)")
	f.BoolVar(&o.pprof, "pprof", false, "serve /debug/pprof by HTTP too")
	e.AddTimeoutFlag(cmd, 0, "give up when it is not ready after this long (default: never)")
	e.AddLogFlag(cmd)
	e.AddCommonFlags(cmd)
	return cmd
}

// stopTimeout bounds a stop in good order.
const stopTimeout = 15 * time.Second

func run(ctx context.Context, e *cli.Env, o *options) error {
	if o.data == "" {
		return cli.Usagef("--data DIR is missing: the master keeps there who belongs to the cluster")
	}
	if o.join && len(o.peers) > 0 {
		return cli.Usagef("--join and --peers exclude each other: --peers found a cluster, --join waits to be added to one")
	}
	logger, err := e.Logger(slog.LevelInfo)
	if err != nil {
		return err
	}
	if err := o.checkRaft(); err != nil {
		return err
	}
	if err := o.checkStore(ctx, logger); err != nil {
		return err
	}
	l, err := o.listeners()
	if err != nil {
		return err
	}
	defer l.close()
	cfg, err := o.config(l, logger)
	if err != nil {
		return err
	}
	m, err := node.StartMaster(ctx, l.grpc, cfg)
	if errors.Is(err, smq.ErrInvalid) {
		err = cli.Exit(cli.ExitUsage, err)
	}
	if err != nil {
		return err
	}
	endpoints := daemon.Endpoints{Metrics: daemon.NewRegistry(), Ready: ready(m), Pprof: o.pprof, Logger: logger}
	stopHTTP := endpoints.Serve(l.http)
	defer stopHTTP()
	return daemon.Process{
		Name: "master", Logger: logger,
		Ready: m.Ready(), ReadyTimeout: time.Duration(e.Flags.Timeout),
		Failed: m.Done(), Err: m.Err,
		AddrFile: o.addrFile,
		Addresses: []daemon.Address{
			{Name: "grpc", Value: cfg.Advertise}, {Name: "raft", Value: cfg.RaftAdvertise}, {Name: "http", Value: cfg.HTTPAddress},
		},
		Stop: m.Stop, StopTimeout: stopTimeout,
	}.Run(ctx)
}

// grouped reports whether the master has, or is to get, others beside it.
func (o *options) grouped() bool { return o.join || len(o.peers) > 0 }

// checkStore finds a URL that is wrong, or missing, before anybody listens. A
// master with peers may learn of the store from them; one with a state has it
// there.
func (o *options) checkStore(ctx context.Context, logger *slog.Logger) error {
	if o.store == "" {
		if _, err := os.Stat(o.data); !o.grouped() && errors.Is(err, os.ErrNotExist) {
			return cli.Usagef("--store URL is missing: a new cluster needs a store")
		}
		return nil
	}
	st, err := node.OpenStore(ctx, o.store, logger)
	if errors.Is(err, smq.ErrInvalid) {
		return cli.Usagef("--store: %w", err)
	}
	if err == nil {
		return st.Close() // it is opened again where it is needed
	}
	return nil // it may answer when it is needed
}

// checkRaft refuses a raft address that cannot be one, also where nobody dials it.
func (o *options) checkRaft() error {
	for flag, address := range map[string]string{"raft": o.raft, "raft-listen": o.raftListen} {
		if err := daemon.CheckAddress(flag, address); address != "" && err != nil {
			return err
		}
	}
	return nil
}

// listeners are what the master listens on; those that are off are nil.
type listeners struct{ grpc, http, raft net.Listener }

func (o *options) listeners() (l listeners, err error) {
	if l.grpc, err = daemon.Listen("listen", o.listen); err != nil {
		return l, err
	}
	if o.http != daemon.Off {
		if l.http, err = daemon.Listen("http", o.http); err != nil {
			l.close()
			return l, err
		}
	}
	if o.grouped() {
		flag, address := "raft", o.raft
		if o.raftListen != "" {
			flag, address = "raft-listen", o.raftListen
		}
		if l.raft, err = daemon.Listen(flag, address); err != nil {
			l.close()
			return l, err
		}
	}
	return l, nil
}

// close closes what nobody has closed yet.
func (l listeners) close() {
	for _, listener := range []net.Listener{l.grpc, l.http, l.raft} {
		if listener != nil {
			listener.Close()
		}
	}
}

func (o *options) config(l listeners, logger *slog.Logger) (master.Config, error) {
	cfg := master.Config{StoreURL: o.store, DataDir: o.data, Peers: o.peers, Join: o.join, RaftListener: l.raft, Logger: logger}
	var err error
	if cfg.Advertise, err = daemon.Advertise(l.grpc, o.advertise); err != nil {
		return cfg, err
	}
	if l.http != nil {
		if cfg.HTTPAddress, err = daemon.Advertise(l.http, ""); err != nil {
			return cfg, err
		}
	}
	if l.raft != nil {
		// It is what the others dial, and what votes are kept by: it is taken as
		// it is written.
		cfg.RaftAdvertise = o.raft
		if _, port, err := net.SplitHostPort(o.raft); o.join && (err != nil || port == "0") {
			return cfg, cli.Usagef("--raft %s: a master that joins others needs an address of its own that stays", o.raft)
		}
		if !o.join && !slices.Contains(o.peers, o.raft) {
			return cfg, cli.Usagef("--raft %s is not one of --peers %v: say there which of them this master is", o.raft, o.peers)
		}
	}
	return cfg, nil
}

// ready says why the master cannot do its part.
func ready(m *node.Master) func() error {
	return func() error {
		select {
		case <-m.Ready():
		default:
			return fmt.Errorf("%w: it does not belong to a cluster yet", smq.ErrUnavailable)
		}
		if m.Info().GetLeadingMaster() == "" {
			return fmt.Errorf("%w: no master leads", smq.ErrUnavailable)
		}
		return nil
	}
}
