package leader

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts what leaders do. One set serves all the terms of a process.
type Metrics struct {
	topics          prometheus.Gauge
	damaged         prometheus.Gauge
	orphans         prometheus.Gauge
	versions        *prometheus.CounterVec
	planned         *prometheus.CounterVec
	pauseSeconds    *prometheus.HistogramVec
	unclean         prometheus.Counter
	failoverSeconds prometheus.Histogram
}

// NewMetrics makes the metrics and registers them; nil for nowhere.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		topics: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "smq_leader_topics", Help: "Topics that this broker, as the leader, has loaded."}),
		damaged: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "smq_leader_damaged_topics", Help: "Topics that this broker, as the leader, cannot load because a file of theirs is damaged."}),
		orphans: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "smq_leader_orphaned_segments", Help: "Segments whose owner is dead and that have no successor yet."}),
		unclean: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "smq_leader_unclean_seals_total", Help: "Segments sealed after every replica was lost."}),
		versions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "smq_leader_layout_versions_total", Help: "Layout versions written, by cause."}, []string{"cause"}),
		planned: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "smq_leader_planned_changes_total", Help: "Splits, merges and moves of segments that were begun, by how they ended."}, []string{"cause", "outcome"}),
		pauseSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "smq_leader_pause_seconds", Help: "For how long publishers of sealed segments waited for a layout version, as far as the leader can tell, by its cause.",
			Buckets: prometheus.ExponentialBuckets(0.002, 2, 14)}, []string{"cause"}),
		failoverSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "smq_leader_failover_seconds", Help: "From the moment brokers were found dead until a segment of theirs had a successor.",
			Buckets: prometheus.ExponentialBuckets(0.002, 2, 14)}),
	}
	if r != nil {
		r.MustRegister(m.topics, m.damaged, m.orphans, m.versions, m.planned, m.pauseSeconds, m.unclean, m.failoverSeconds)
	}
	return m
}

// clear takes back what is told of the present: the broker leads no more.
func (m *Metrics) clear() {
	for _, g := range []prometheus.Gauge{m.topics, m.damaged, m.orphans} {
		g.Set(0)
	}
}
