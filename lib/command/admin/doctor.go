package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/seaweedmq/smq/lib/catalog"
	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/command/node"
	"github.com/seaweedmq/smq/lib/rpc"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
	"github.com/seaweedmq/smq/lib/store"
)

// probeTimeout bounds each single question of the doctor's.
const probeTimeout = 5 * time.Second

func newDoctor(e *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what is wrong with the cluster, and what to do",
		Long: `Ask every master and broker, and say what is wrong with the cluster and what to
do about it. Exit code 10 if something is wrong; notes alone are healthy.`,
		Example: "  smq-admin doctor\n  smq-admin doctor -q && echo healthy\n  smq-admin doctor -o json | jq '.[] | select(.status != \"ok\")'",
		Args:    cli.Args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, address := range e.Flags.Masters {
				if err := rpc.CheckAddress(address); err != nil {
					return err
				}
			}
			ctx, cancel := e.WithTimeout(cmd.Context())
			defer cancel()
			found := judge(examine(ctx, e))
			if err := findingColumns.List(e, found); err != nil {
				return err
			}
			if ctx := cmd.Context(); ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if slices.ContainsFunc(found, func(f finding) bool { return f.Status == bad }) {
				return cli.Exit(cli.ExitUnhealthy, nil)
			}
			return nil
		},
	}
	e.AddOutputFlag(cmd)
	return cmd
}

// The states of a finding.
const (
	ok   = "ok"
	note = "note" // healthy, but worth knowing
	bad  = "bad"
)

// finding is one thing that the doctor found out.
type finding struct {
	Check  string `json:"check"`
	Status string `json:"status"`
	Detail string `json:"detail"`
	Advice string `json:"advice"`
}

var findingColumns = cli.View[finding]{
	Name: func(f finding) string { return f.Check },
	Columns: []cli.Column[finding]{
		{Header: "CHECK", Cell: func(f finding) string { return f.Check }},
		{Header: "STATUS", Cell: func(f finding) string { return f.Status }},
		{Header: "DETAIL", Cell: func(f finding) string {
			if f.Advice != "" {
				return f.Detail + "; " + f.Advice
			}
			return f.Detail
		}},
	},
}

// examination is what the cluster's members answered.
type examination struct {
	masters map[string]error   // by address; nil: it answers
	info    *smqpb.ClusterInfo // from the master that knows most; nil: none answers
	brokers map[string]error   // by address, those that are not silent
	writes  map[string]string  // by address: why a broker cannot write to the store, those that cannot
	ready   map[string]error   // by address: what /readyz says
	leader  error              // whether the broker that leads by info can list topics
	topics  []*smqpb.TopicSummary
	past    map[string]*pastSeals // by topic, those with unclean seals
	unread  int                   // topics whose history there was no time to look at
	store   []string              // what the store itself finds missing
	damaged map[string]string     // by topic: which file of it is damaged, and how
	now     time.Time
}

// examine asks everybody.
func examine(ctx context.Context, e *cli.Env) examination {
	conns := rpc.NewConns(rpc.DialOptions{})
	defer conns.Close()
	x := examination{masters: map[string]error{}, brokers: map[string]error{}, writes: map[string]string{}, ready: map[string]error{}, damaged: map[string]string{}, now: time.Now()}
	x.askMasters(ctx, conns, e.Flags.Masters)
	if x.info == nil {
		return x
	}
	var others []string
	for _, m := range x.info.GetMasters() {
		if _, asked := x.masters[m.GetAddress()]; !asked && m.GetAddress() != "" {
			others = append(others, m.GetAddress())
		}
	}
	x.askMasters(ctx, conns, others)
	x.askBrokers(ctx, conns)
	x.askLeader(ctx, conns)
	x.askStore(ctx, x.info.GetStore())
	return x
}

// askStore looks into the store itself. One that cannot be reached from here says
// nothing; the brokers' answers matter.
func (x *examination) askStore(ctx context.Context, url string) {
	st, err := openStore(ctx, url)
	if err != nil {
		return
	}
	defer st.Close() // only read
	x.store = missing(ctx, st)
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	// Files that were damaged after the leading broker had loaded their topics,
	// which it would find out when it is too late. What there is no time for it
	// has told of.
	damaged, _ := catalog.Check(ctx, st)
	for _, d := range damaged {
		x.damaged[d.Topic.String()] = d.Err.Error()
	}
}

func openStore(ctx context.Context, url string) (store.Store, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return node.OpenStore(ctx, url, slog.New(slog.DiscardHandler))
}

// missing asks a store that can tell what is missing to survive failures.
func missing(ctx context.Context, st store.Store) []string {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	checker, can := st.(interface {
		Check(ctx context.Context) ([]string, error)
	})
	if !can {
		return nil
	}
	missing, err := checker.Check(ctx)
	if err != nil {
		return []string{fmt.Sprintf("the store does not tell how it is set up: %v", err)}
	}
	return missing
}

// askMasters asks each of the masters for the cluster.
func (x *examination) askMasters(ctx context.Context, conns *rpc.Conns, addresses []string) {
	var mu sync.Mutex
	each(addresses, func(address string) {
		info, err := askMaster(ctx, conns, address)
		mu.Lock()
		defer mu.Unlock()
		x.masters[address] = err
		// The leading one knows loads and silences.
		if err == nil && (x.info == nil || info.GetLeadingMaster() == address) {
			x.info = info
		}
	})
}

func askMaster(ctx context.Context, conns *rpc.Conns, address string) (*smqpb.ClusterInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	conn, err := conns.Get(address)
	if err != nil {
		return nil, err
	}
	return smqpb.NewMasterClient(conn).Cluster(ctx, &smqpb.ClusterRequest{})
}

// askBrokers asks each broker that is not silent for its segments, and whether
// it is ready if it has an HTTP address.
func (x *examination) askBrokers(ctx context.Context, conns *rpc.Conns) {
	var mu sync.Mutex
	var addresses []string
	http := map[string]string{}
	for _, b := range x.info.GetBrokers() {
		if !b.GetSilent() {
			addresses = append(addresses, b.GetAddress())
			http[b.GetAddress()] = b.GetHttpAddress()
		}
	}
	each(addresses, func(address string) {
		stuck, err := askBroker(ctx, conns, address)
		var ready error
		if err == nil && stuck == "" && http[address] != "" {
			ready = askReady(ctx, http[address])
		}
		mu.Lock()
		defer mu.Unlock()
		x.brokers[address], x.ready[address] = err, ready
		if stuck != "" {
			x.writes[address] = stuck
		}
	})
}

// askBroker asks a broker for its segments. stuck is why it brings nothing into
// the store, if so.
func askBroker(ctx context.Context, conns *rpc.Conns, address string) (stuck string, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	conn, err := conns.Get(address)
	if err != nil {
		return "", err
	}
	resp, err := smqpb.NewBrokerClient(conn).ListSegments(ctx, &smqpb.ListSegmentsRequest{})
	return resp.GetStoreError(), err
}

// askReady is why the process at an HTTP address is not ready; nil when it is,
// or when the endpoint cannot be reached from here.
func askReady(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
	if err != nil {
		return nil
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil
	}
	defer resp.Body.Close() // only read
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	reason, err := io.ReadAll(io.LimitReader(resp.Body, 1000))
	if err != nil {
		return fmt.Errorf("/readyz answers %s", resp.Status)
	}
	return errors.New(strings.TrimSpace(string(reason)))
}

// each calls f for each address, several at a time.
func each(addresses []string, f func(address string)) {
	var g errgroup.Group
	g.SetLimit(maxBrokersAsked)
	for _, address := range addresses {
		g.Go(func() error { f(address); return nil })
	}
	_ = g.Wait() // f returns nothing
}

// judge says what is wrong. It only looks at what was found.
func judge(x examination) []finding {
	found := x.judgeMasters()
	if x.info == nil {
		return found
	}
	found = append(found, x.judgeBrokers()...)
	found = append(found, x.judgeLeader())
	found = append(found, x.judgeTopics()...)
	found = append(found, x.judgeSeals()...)
	return append(found, x.judgeStore()...)
}

func (x examination) judgeMasters() []finding {
	const check = "masters"
	var found []finding
	up := 0
	for _, address := range sortedKeys(x.masters) {
		err := x.masters[address]
		if errors.Is(err, rpc.ErrForeign) {
			found = append(found, finding{check, bad, address + " is not an SMQ master", "name the masters that there are with --master"})
			continue
		}
		if err != nil {
			found = append(found, finding{check, bad, fmt.Sprintf("master %s does not answer: %v", address, err), unanswered(err, "start it, or name the masters that there are with --master")})
			continue
		}
		up++
	}
	switch {
	case x.info == nil:
	case x.info.GetLeadingMaster() == "":
		found = append(found, finding{check, bad, "no master leads: less than a majority of them is there",
			"start the missing masters; until then brokers and leadership cannot change, though messages go on"})
	case len(x.masters) == 1:
		found = append(found, finding{check, note, "there is one master, at " + x.info.GetLeadingMaster(), "while it is down no broker can join and none is replaced; three masters (--peers) survive the loss of one"})
	default:
		answer := "answer"
		if up == 1 {
			answer = "answers"
		}
		found = append(found, finding{check, ok, fmt.Sprintf("%s %s, %s leads", smq.Count(up, "master"), answer, x.info.GetLeadingMaster()), ""})
	}
	return found
}

// notReached is the advice about a broker to which there is no connection.
const notReached = "clients must reach it at this address; see its --advertise"

// unanswered is the advice about a process that does not answer: unreached, unless
// it can be connected to.
func unanswered(err error, unreached string) string {
	switch {
	case errors.Is(err, rpc.ErrHangs):
		return "its address is right, but it hangs: the process is paused or overloaded; let it go on, or restart it"
	case errors.Is(err, smq.ErrTimeout):
		return "it hangs or is overloaded, or the network to it loses what is sent; look at its log. Otherwise: " + unreached
	}
	return unreached
}

func (x examination) judgeBrokers() []finding {
	const check = "brokers"
	var found []finding
	healthy := 0
	versions := map[string]bool{}
	for _, b := range x.info.GetBrokers() {
		name := fmt.Sprintf("broker %s at %s", b.GetId(), b.GetAddress())
		versions[b.GetVersion()] = true
		switch {
		case b.GetSilent():
			found = append(found, finding{check, bad, name + " is silent", "if its process has ended, others take its segments over within seconds; if it lives, look at its log and at the network to the masters"})
		case x.brokers[b.GetAddress()] != nil:
			found = append(found, finding{check, bad, fmt.Sprintf("%s does not answer: %v", name, x.brokers[b.GetAddress()]), unanswered(x.brokers[b.GetAddress()], notReached)})
		case x.writes[b.GetAddress()] != "":
			found = append(found, finding{check, bad, fmt.Sprintf("%s cannot write to the store: %s", name, x.writes[b.GetAddress()]),
				"make room or mend the store, " + x.info.GetStore() + "; until then no message is acked"})
		case x.ready[b.GetAddress()] != nil:
			found = append(found, finding{check, bad, fmt.Sprintf("%s is not ready: %v", name, x.ready[b.GetAddress()]), "see its log"})
		case b.GetDraining():
			found = append(found, finding{check, note, name + " is draining", ""})
		default:
			healthy++
			found = append(found, judgeMemory(name, b.GetLoad())...)
		}
	}
	switch {
	case healthy == 0 && len(x.writes) > 0: // enough is said
	case healthy == 0 && x.info.GetLeadingMaster() == "":
		found = append(found, finding{check, note, "without a leading master nobody knows which brokers are there", "see to the masters first"})
	case healthy == 0:
		found = append(found, finding{check, bad, "no broker is there to take or to serve messages", "start one: smq-broker --master " + x.info.GetLeadingMaster()})
	case healthy == 1:
		found = append(found, finding{check, note, "there is one broker", "with a second one messages go on while the first is restarted"})
	default:
		found = append(found, finding{check, ok, fmt.Sprintf("%d brokers are ready", healthy), ""})
	}
	if len(versions) > 1 {
		found = append(found, finding{"versions", note, "brokers of several versions: " + strings.Join(sortedKeys(versions), ", "), "finish the upgrade"})
	}
	return found
}

// fullMemory is the part of a broker's memory for buffers beyond which
// publishers are about to be held back.
const fullMemory = 0.9

func judgeMemory(name string, load *smqpb.Load) []finding {
	used, limit := float64(load.GetMemoryUsed()), float64(load.GetMemoryLimit())
	if limit == 0 || used < fullMemory*limit {
		return nil
	}
	return []finding{{"memory", note, fmt.Sprintf("%s uses %s of %s", name, cli.FormatSize(int64(used)), cli.FormatSize(int64(limit))),
		"its store may be too slow for what is published; give it more with --memory, or add brokers"}}
}

// judgeStore says what the store's URL promises, and what it finds itself.
func (x examination) judgeStore() []finding {
	const check = "store"
	url := x.info.GetStore()
	var found []finding
	for _, missing := range x.store {
		found = append(found, finding{check, note, missing, ""})
	}
	switch {
	case len(found) > 0:
		return found
	case strings.Contains(url, "fsync=false"):
		return []finding{{check, note, url + " does not sync", "what is acked may be lost when the machine loses power"}}
	case strings.HasPrefix(url, "dir:"):
		return []finding{{check, ok, url + " syncs each file, on one machine", ""}}
	}
	return []finding{{check, ok, url, ""}}
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
