package admin

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/seaweedmq/smq/lib/bench"
	"github.com/seaweedmq/smq/lib/cli"
	"github.com/seaweedmq/smq/lib/smq"
	"github.com/seaweedmq/smq/lib/smqpb"
)

// benchView is a measurement as it is printed. Latencies are in ms.
type benchView struct {
	staged     bool   // the rate changes
	Test       string `json:"test"` // pub, sub, e2e
	Topic      string `json:"topic"`
	Partitions int32  `json:"partitions"`
	Replicas   int32  `json:"replicas"` // wanted; 0: the default

	Acks          string  `json:"acks"`            // asked for; empty when reading
	RatePerSecond float64 `json:"rate_per_second"` // the highest; 0: as fast as possible
	InFlight      int     `json:"in_flight"`       // 0: what the buffer takes
	Size          int     `json:"size"`            // of a value, 0 when it is not known
	Producers     int     `json:"producers"`
	LingerMS      float64 `json:"linger_ms"`
	Codec         string  `json:"codec"`
	WarmupSeconds float64 `json:"warmup_seconds"`

	Messages          int64   `json:"messages"`
	Bytes             int64   `json:"bytes"`
	Seconds           float64 `json:"seconds"`
	MessagesPerSecond float64 `json:"messages_per_second"`
	BytesPerSecond    float64 `json:"bytes_per_second"`
	AckedStored       int64   `json:"acked_stored"`
	AckedReplicated   int64   `json:"acked_replicated"`
	Errors            int64   `json:"errors"`

	Ack      *latencyView `json:"ack_ms"`      // null when reading
	Delivery *latencyView `json:"delivery_ms"` // null but for e2e

	Stages  []benchStage  `json:"stages"`  // null unless there are several rates
	Changes []benchChange `json:"changes"` // null when reading
}

// benchStage is a time of one rate.
type benchStage struct {
	RatePerSecond float64     `json:"rate_per_second"`
	Seconds       float64     `json:"seconds"`
	Messages      int64       `json:"messages"` // acked
	Ack           latencyView `json:"ack_ms"`
}

// viewStages are the stages of a run, if there are several.
func viewStages(stages []bench.Stage, acks []bench.Latency) []benchStage {
	if len(stages) < 2 {
		return nil
	}
	views := make([]benchStage, len(stages))
	for i, s := range stages {
		views[i] = benchStage{RatePerSecond: s.Rate, Seconds: s.For.Seconds(), Messages: acks[i].Count, Ack: *viewLatency(acks[i])}
	}
	return views
}

// benchChange is a change of the topic's layout, with how long the acks took of
// what was due in the seconds of it.
type benchChange struct {
	Version   uint64      `json:"version"`
	CreatedMS int64       `json:"created_ms"`
	Cause     string      `json:"cause"`
	PauseMS   int64       `json:"pause_ms"`
	Messages  int64       `json:"messages"`
	Ack       latencyView `json:"ack_ms"`
}

// latencyView is how long messages took, in ms.
type latencyView struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99_9"`
	Max  float64 `json:"max"`
}

func viewBench(test string, config *smqpb.TopicConfig, p benchPlan, r bench.Result) benchView {
	v := benchView{
		Test: test, Topic: config.GetTopic(), Partitions: config.GetPartitions(), Replicas: config.GetReplicas(),
		Messages: r.Messages, Bytes: r.Bytes, Seconds: r.Elapsed.Seconds(), MessagesPerSecond: perSecond(r.MessagesPerSecond()),
		BytesPerSecond: perSecond(r.BytesPerSecond()), AckedStored: r.Stored, AckedReplicated: r.Replicated, Errors: r.Errors(),
	}
	if test == "sub" {
		return v
	}
	v.Acks, v.InFlight, v.Size, v.Producers = p.publisher.Acks.String(), p.options.InFlight, p.options.Size, p.options.Producers
	v.staged = len(p.options.Stages) > 1
	for _, s := range p.options.Stages {
		v.RatePerSecond = max(v.RatePerSecond, s.Rate)
	}
	v.LingerMS, v.Codec, v.WarmupSeconds = millis(max(p.publisher.Linger, 0)), p.publisher.Codec.String(), p.options.Warmup.Seconds()
	v.Ack = viewLatency(r.Ack)
	if test == "e2e" {
		v.Delivery = viewLatency(r.Delivery)
	}
	return v
}

func viewLatency(l bench.Latency) *latencyView {
	return &latencyView{Mean: millis(l.Mean), P50: millis(l.P50), P90: millis(l.P90), P99: millis(l.P99), P999: millis(l.P999), Max: millis(l.Max)}
}

// millis is a duration in ms, to the µs.
func millis(d time.Duration) float64 { return float64(d.Round(time.Microsecond)) / 1e6 }

func printBench(e *cli.Env, format string, v benchView) error {
	switch format {
	case "json":
		enc := json.NewEncoder(e.Stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	case "csv":
		return v.csv(e)
	}
	return benchColumns.One(e, v, func() error {
		if v.Ack == nil {
			return nil
		}
		if _, err := fmt.Fprintln(e.Stdout); err != nil {
			return err
		}
		rows := []namedLatency{{"ack", *v.Ack}}
		if v.Delivery != nil {
			rows = append(rows, namedLatency{"delivery", *v.Delivery})
		}
		if err := latencyColumns.Table(e, rows); err != nil {
			return err
		}
		if err := moreRows(e, benchStageColumns, v.Stages); err != nil {
			return err
		}
		return moreRows(e, benchChangeColumns, v.Changes)
	})
}

// moreRows prints one more table, if there is anything in it.
func moreRows[T any](e *cli.Env, columns cli.View[T], rows []T) error {
	if len(rows) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(e.Stdout); err != nil {
		return err
	}
	return columns.Table(e, rows)
}

var benchStageColumns = cli.View[benchStage]{
	Name: func(s benchStage) string { return smq.MessageRate(s.RatePerSecond) },
	Columns: []cli.Column[benchStage]{
		{Header: "RATE", Cell: func(s benchStage) string { return smq.MessageRate(s.RatePerSecond) }, Right: true},
		{Header: "FOR", Cell: func(s benchStage) string { return strconv.FormatFloat(s.Seconds, 'f', -1, 64) + "s" }, Right: true},
		{Header: "ACKS", Cell: func(s benchStage) string { return number(s.Messages) }, Right: true},
		{Header: "P50 MS", Cell: func(s benchStage) string { return decimals(s.Ack.P50) }, Right: true},
		{Header: "P99 MS", Cell: func(s benchStage) string { return decimals(s.Ack.P99) }, Right: true},
		{Header: "MAX MS", Cell: func(s benchStage) string { return decimals(s.Ack.Max) }, Right: true},
	},
}

var benchChangeColumns = cli.View[benchChange]{
	Name: func(c benchChange) string { return c.Cause },
	Columns: []cli.Column[benchChange]{
		{Header: "CHANGE", Cell: func(c benchChange) string { return c.Cause }},
		{Header: "VERSION", Cell: func(c benchChange) string { return number(c.Version) }, Right: true},
		{Header: "AT", Cell: func(c benchChange) string { return time.UnixMilli(c.CreatedMS).Format("15:04:05.000") }},
		{Header: "PAUSE MS", Cell: func(c benchChange) string { return number(c.PauseMS) }, Right: true},
		{Header: "ACKS", Cell: func(c benchChange) string { return number(c.Messages) }, Right: true},
		{Header: "P50 MS", Cell: func(c benchChange) string { return decimals(c.Ack.P50) }, Right: true},
		{Header: "P99 MS", Cell: func(c benchChange) string { return decimals(c.Ack.P99) }, Right: true},
		{Header: "MAX MS", Cell: func(c benchChange) string { return decimals(c.Ack.Max) }, Right: true},
	},
}

var benchColumns = cli.View[benchView]{
	Name: func(v benchView) string { return v.Topic },
	Columns: []cli.Column[benchView]{
		{Header: "TEST", Cell: benchView.title},
		{Header: "MESSAGES", Cell: func(v benchView) string {
			return fmt.Sprintf("%d, %s, in %.1fs", v.Messages, cli.FormatSize(v.Bytes), v.Seconds)
		}},
		{Header: "RATE", Cell: func(v benchView) string {
			return smq.MessageRate(v.MessagesPerSecond) + ", " + smq.ByteRate(v.BytesPerSecond)
		}},
		{Header: "ACKS", Cell: func(v benchView) string {
			if v.Ack == nil {
				return "-"
			}
			return fmt.Sprintf("%d stored, %d replicated", v.AckedStored, v.AckedReplicated)
		}},
		{Header: "ERRORS", Cell: func(v benchView) string { return number(v.Errors) }},
	},
}

// title says what was measured.
func (v benchView) title() string {
	topic := fmt.Sprintf("%s of %s, %s", v.Test, v.Topic, smq.Count(v.Partitions, "partition"))
	if v.Ack == nil {
		return topic
	}
	pace := "as fast as possible"
	switch {
	case v.RatePerSecond > 0:
		pace = "at " + smq.MessageRate(v.RatePerSecond)
		if v.staged {
			pace = "at up to " + smq.MessageRate(v.RatePerSecond)
		}
	case v.InFlight > 0:
		pace = fmt.Sprintf("%d under way", v.InFlight)
	}
	return fmt.Sprintf("%s, %s a message, %s, %s", topic, cli.FormatSize(int64(v.Size)), pace, smq.Count(v.Producers, "producer"))
}

// namedLatency is a row of the table of latencies.
type namedLatency struct {
	name string
	latencyView
}

var latencyColumns = cli.View[namedLatency]{
	Name: func(l namedLatency) string { return l.name },
	Columns: []cli.Column[namedLatency]{
		{Header: "MS", Cell: func(l namedLatency) string { return l.name }},
		{Header: "MEAN", Cell: func(l namedLatency) string { return decimals(l.Mean) }, Right: true},
		{Header: "P50", Cell: func(l namedLatency) string { return decimals(l.P50) }, Right: true},
		{Header: "P90", Cell: func(l namedLatency) string { return decimals(l.P90) }, Right: true},
		{Header: "P99", Cell: func(l namedLatency) string { return decimals(l.P99) }, Right: true},
		{Header: "P99.9", Cell: func(l namedLatency) string { return decimals(l.P999) }, Right: true},
		{Header: "MAX", Cell: func(l namedLatency) string { return decimals(l.Max) }, Right: true},
	},
}

func decimals(ms float64) string { return strconv.FormatFloat(ms, 'f', 3, 64) }

// csv prints a line of headers and a line of values; empty ones do not apply.
func (v benchView) csv(e *cli.Env) error {
	head := []string{
		"test", "topic", "partitions", "replicas", "acks", "rate_per_second", "in_flight", "size", "producers", "linger_ms", "codec",
		"warmup_seconds", "messages", "bytes", "seconds", "messages_per_second", "bytes_per_second", "acked_stored", "acked_replicated", "errors",
	}
	values := []string{
		v.Test, v.Topic, number(v.Partitions), number(v.Replicas), v.Acks, decimals(v.RatePerSecond), strconv.Itoa(v.InFlight), strconv.Itoa(v.Size),
		strconv.Itoa(v.Producers), decimals(v.LingerMS), v.Codec, decimals(v.WarmupSeconds), number(v.Messages), number(v.Bytes), decimals(v.Seconds),
		decimals(v.MessagesPerSecond), decimals(v.BytesPerSecond), number(v.AckedStored), number(v.AckedReplicated), number(v.Errors),
	}
	for _, l := range []struct {
		name string
		ms   *latencyView
	}{{"ack", v.Ack}, {"delivery", v.Delivery}} {
		for _, name := range []string{"mean", "p50", "p90", "p99", "p99_9", "max"} {
			head = append(head, l.name+"_"+name+"_ms")
		}
		if l.ms == nil {
			values = append(values, "", "", "", "", "", "")
			continue
		}
		for _, ms := range []float64{l.ms.Mean, l.ms.P50, l.ms.P90, l.ms.P99, l.ms.P999, l.ms.Max} {
			values = append(values, decimals(ms))
		}
	}
	w := csv.NewWriter(e.Stdout)
	return w.WriteAll([][]string{head, values})
}
