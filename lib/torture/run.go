package torture

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/seaweedmq/smq/lib/client"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/torture/check"
)

// historyFile is the history's name in the run's directory.
const historyFile = "history.ndjson"

// run is a run while it lasts.
type run struct {
	Options
	recorder *recorder
	cluster  *cluster
	topics   []topicPlan
	clients  []*client.Client
}

// topicPlan is a topic that the run uses.
type topicPlan struct {
	topic  smq.Topic
	linear bool
}

// Run starts a cluster, uses it, does to it what the options say, mends
// everything, and checks what users saw. The error says why that could not be
// done; broken promises are in the report. All processes have ended when it
// returns. Dir is left as it is, and so is what is in a store outside of it if a
// promise was broken, or Keep says so.
func Run(ctx context.Context, o Options) (Report, error) {
	if err := o.check(); err != nil {
		return Report{}, err
	}
	history := filepath.Join(o.Dir, historyFile)
	rec, err := newRecorder(history, check.Options{})
	if err != nil {
		return Report{}, err
	}
	r := &run{Options: o, recorder: rec, topics: planTopics(o.Topics)}
	verified, err := r.run(ctx)
	result, finishErr := rec.finish()
	if err = errors.Join(err, finishErr); err != nil {
		return Report{}, err
	}
	report := newReport(result)
	report.Seed, report.Masters, report.Brokers = o.Seed, o.Masters, o.Brokers
	report.Topics, report.Partitions, report.Replicas = len(r.topics), o.Partitions, o.Replicas
	report.DurationMS, report.TookMS = o.Duration.Milliseconds(), rec.now()/1000
	report.Store, report.Verified = r.cluster.store.direct, verified
	report.History, report.Dir = history, o.Dir
	if remove := r.cluster.store.remove; remove != nil && report.Violations.Count() == 0 && !o.Keep {
		err = remove(ctx)
	}
	return report, errors.Join(err, drawPictures(o.Dir, result))
}

func planTopics(n int) []topicPlan {
	plans := []topicPlan{{topic: smq.Topic{Namespace: smq.DefaultNamespace, Name: "ledger"}, linear: true}}
	for i := range n {
		plans = append(plans, topicPlan{topic: smq.Topic{Namespace: smq.DefaultNamespace, Name: fmt.Sprintf("events-%d", i+1)}})
	}
	return plans
}

func (r *run) run(ctx context.Context) (Verified, error) {
	var err error
	if r.cluster, err = newCluster(ctx, r.Options, r.crashed); err != nil {
		return Verified{}, err
	}
	defer r.cluster.close()
	defer r.closeClients()
	if err := r.cluster.start(ctx); err != nil {
		return Verified{}, err
	}
	observer, err := r.prepare(ctx)
	if err != nil {
		return Verified{}, err
	}
	r.Tell("%s and %s work on %s; torturing them for %v with seed %d", smq.Count(r.Masters, "master"), smq.Count(r.Brokers, "broker"), r.cluster.store.direct, r.Duration, r.Seed)
	if err := r.torture(ctx, observer); err != nil {
		return Verified{}, err
	}
	return r.examine(ctx)
}

// crashed notes that a process has ended by itself.
func (r *run) crashed(who, how string) {
	r.Tell("%s has failed: %s", who, how)
	r.recorder.add(check.Event{Kind: check.Crashed, Who: who, Text: how})
}

// connect makes a client that is closed at the end.
func (r *run) connect(ctx context.Context, name string) (*client.Client, error) {
	c, err := r.cluster.connect(ctx, name)
	if err == nil {
		r.clients = append(r.clients, c)
	}
	return c, err
}

func (r *run) closeClients() {
	for _, c := range r.clients {
		_ = c.Close() // what was under way has been noted
	}
}

// prepare creates the topics.
func (r *run) prepare(ctx context.Context) (observer *client.Client, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.Settle)
	defer cancel()
	if observer, err = r.connect(ctx, "observer"); err != nil {
		return nil, err
	}
	for _, t := range r.topics {
		if _, err := observer.CreateTopic(ctx, t.topic, client.TopicOptions{Partitions: r.Partitions, Replicas: r.Replicas, Scaling: r.scaling()}); err != nil {
			return nil, err
		}
		r.recorder.add(check.Event{Kind: check.Topic, Topic: t.topic.String(), Partitions: r.Partitions, Linear: t.linear})
	}
	return observer, nil
}

// worker is somebody who uses the cluster until ctx ends.
type worker interface{ run(ctx context.Context) }

// torture uses the cluster and does the faults, mends everything, and waits
// until all publishers are done.
func (r *run) torture(ctx context.Context, observer *client.Client) error {
	publishers, others, err := r.workers(ctx)
	if err != nil {
		return err
	}
	publishing, stopPublishing := context.WithCancel(ctx)
	defer stopPublishing()
	reading, stopReading := context.WithCancel(ctx)
	defer stopReading()
	var published, read sync.WaitGroup
	for _, p := range publishers {
		published.Go(func() { p.run(ctx, publishing) })
	}
	for _, w := range others {
		read.Go(func() { w.run(reading) })
	}
	telling := r.tellProgress(reading)
	r.injectAll(ctx, observer)
	if ctx.Err() == nil {
		r.tellMended()
	}
	stopPublishing()
	published.Wait()
	stopReading()
	read.Wait()
	<-telling
	return context.Cause(ctx)
}

func (r *run) tellMended() {
	all, unknown := r.cluster.network.Accepted()
	r.detail("%d connections were made, %d of unknown origin", all, unknown)
	r.Tell("all faults are mended; waiting for the publishers")
}

// injectAll does faults for as long as the run lasts, and returns when all have
// been mended.
func (r *run) injectAll(ctx context.Context, observer *client.Client) {
	ctx, cancel := context.WithTimeout(ctx, r.Duration)
	defer cancel()
	go func() {
		select {
		case <-r.Stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	in := &injector{cluster: r.cluster, observer: observer, begun: r.begun, hung: r.hung}
	for _, t := range r.topics {
		in.topics = append(in.topics, t.topic)
	}
	actions := r.actions()
	if len(actions) == 0 {
		<-ctx.Done()
		return
	}
	p := newPlan(r.Seed, r.Every, actions)
	slots := make(chan struct{}, r.AtOnce)
	var running sync.WaitGroup
	defer running.Wait()
	for {
		s := p.next()
		if pause(ctx, s.wait) != nil {
			return
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		running.Go(func() {
			in.run(ctx, s)
			<-slots
		})
	}
}

// actions are those that are possible here.
func (r *run) actions() []action {
	have := r.cluster.store.have
	if r.Masters > 1 {
		have = append(have, peers)
	}
	actions := possible(r.Families, have)
	if canFreeze {
		return actions
	}
	var some []action
	for _, a := range actions {
		if a.deed != freeze {
			some = append(some, a)
		}
	}
	return some
}

// begun notes a fault.
func (r *run) begun(s step, hit []*daemon) (over func()) {
	var losing []string // brokers that may lose what they hold
	for _, d := range hit {
		switch {
		case s.deed == drain || s.deed == starve:
		case r.cluster.isBroker(d):
			losing = append(losing, d.name)
		case slices.Contains(r.cluster.masters, d) && !slices.Contains(losing, check.Masters):
			losing = append(losing, check.Masters)
		}
	}
	r.detail("%s: %v for %v", s.name, names(hit), s.lasts.Round(time.Millisecond))
	return r.recorder.fault(s.name, losing)
}

func (r *run) hung(who, how string) {
	r.crashed(who, how)
}

const tellEvery = 5 * time.Second

// tellProgress tells how it goes until ctx ends; then it closes the channel.
func (r *run) tellProgress(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for pause(ctx, tellEvery) == nil {
			s, faults, violations, doubts := r.recorder.progress()
			acked := 0
			for _, n := range s.Acked {
				acked += n
			}
			r.Tell("%ds: %d sent, %d acked, %d failed, %d read; %s; longest outage %dms; %s, %d in doubt",
				r.recorder.now()/1e6, s.Sent, acked, s.NotStored+s.Unknown, s.Read, smq.Count(faults, "fault"), s.Outage.Length()/1000, smq.Count(violations, "violation"), doubts)
		}
	}()
	return done
}

// examine reads everything back, stops the cluster, and looks at what is
// stored.
func (r *run) examine(ctx context.Context) (Verified, error) {
	r.Tell("reading everything back")
	r.readBack(ctx)
	r.closeClients()
	if err := r.cluster.stop(ctx); err != nil {
		r.crashed("the cluster", err.Error())
	}
	r.searchLogs()
	r.Tell("verifying what is stored")
	st, err := r.cluster.store.open(ctx)
	if err != nil {
		return Verified{}, err
	}
	all := Verified{Changes: make(map[string]int)}
	for _, t := range r.topics {
		v, err := verify(ctx, r.recorder, st, t.topic, r.cluster.part)
		if err != nil {
			return all, errors.Join(err, st.Close())
		}
		all.Segments, all.Chunks = all.Segments+v.Segments, all.Chunks+v.Chunks
		all.Messages, all.Bytes = all.Messages+v.Messages, all.Bytes+v.Bytes
		for cause, n := range v.Changes {
			all.Changes[cause] += n
		}
	}
	return all, st.Close()
}

// readBack reads all topics at once, so that one that cannot be read does not
// keep the others from it.
func (r *run) readBack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, r.Settle)
	defer cancel()
	c, err := r.connect(ctx, check.Final)
	if err != nil {
		r.recorder.add(check.Event{Kind: check.Stuck, Who: check.Final, Text: err.Error()})
		return
	}
	var reading sync.WaitGroup
	for _, t := range r.topics {
		reading.Go(func() { readBack(ctx, r.recorder, c, t.topic, r.Partitions) })
	}
	reading.Wait()
}

// faulty is how a program's own fault shows in a log: a panic, the trace of a
// stack, a race.
var faulty = regexp.MustCompile(`(?m)^.*(panic:|fatal error:|DATA RACE|internal error|goroutine \d+ \[running).*$`)

// searchLogs looks for processes' own faults.
func (r *run) searchLogs() {
	for _, d := range r.cluster.daemons() {
		content, err := os.ReadFile(d.logFile())
		if err != nil {
			continue // it has written nothing
		}
		if line := faulty.Find(content); line != nil {
			r.crashed(d.name, string(line))
		}
	}
}

// drawPictures draws what is not linearizable.
func drawPictures(dir string, result check.Result) error {
	for i, p := range result.Pictures {
		file, err := os.Create(filepath.Join(dir, fmt.Sprintf("not-linearizable-%d.html", i+1)))
		if err != nil {
			return err
		}
		if err := errors.Join(p.Draw(file), file.Close()); err != nil {
			return fmt.Errorf("draw %s: %w", p.Name, err)
		}
	}
	return nil
}

// random is a source for one of those who use the cluster.
func (r *run) random(n int) *rand.Rand { return rand.New(rand.NewPCG(r.Seed, uint64(n)+2)) }
