package broker

import "github.com/prometheus/client_golang/prometheus"

// metrics counts what passes through a broker. What its segments do is counted
// by lib/seglog.
type metrics struct {
	receivedBatches prometheus.Counter
	receivedBytes   prometheus.Counter
	acked           prometheus.Counter
	refused         *prometheus.CounterVec
	unacked         prometheus.Gauge
	servedBatches   prometheus.Counter
	servedBytes     prometheus.Counter
	streams         *prometheus.GaugeVec
	segments        prometheus.Gauge
	offeredMessages prometheus.Gauge
	offeredBytes    prometheus.Gauge
	flushLag        prometheus.Gauge
	leading         prometheus.Gauge
	leased          prometheus.GaugeFunc
}

func newMetrics(r prometheus.Registerer, leased func() bool) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	m := &metrics{
		receivedBatches: counter("smq_published_batches_total", "Batches received from publishers."),
		receivedBytes:   counter("smq_published_bytes_total", "Bytes of batches received from publishers."),
		acked:           counter("smq_acked_batches_total", "Batches acked to publishers, repeats included."),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "smq_refused_batches_total", Help: "Batches refused, by reason."}, []string{"reason"}),
		unacked:       gauge("smq_unacked_batches", "Batches received and not answered yet."),
		servedBatches: counter("smq_served_batches_total", "Batches sent to subscribers."),
		servedBytes:   counter("smq_served_bytes_total", "Bytes of batches sent to subscribers."),
		streams: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "smq_streams", Help: "Open streams, by kind."}, []string{"kind"}),
		segments:        gauge("smq_segments", "Segments that this broker owns and has open."),
		offeredMessages: gauge("smq_segments_messages_per_second", "Messages that this broker's segments take in a second, lately, all together."),
		offeredBytes:    gauge("smq_segments_bytes_per_second", "Bytes that this broker's segments take in a second, lately, all together."),
		flushLag:        gauge("smq_flush_lag_seconds", "Age of the oldest batch that is received and not stored."),
		leading:         gauge("smq_leading", "1 while this broker leads the cluster."),
		leased: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "smq_leased", Help: "1 while this broker's lease is valid by its own clock."}, func() float64 {
			if leased() {
				return 1
			}
			return 0
		}),
	}
	if r != nil {
		r.MustRegister(m.receivedBatches, m.receivedBytes, m.acked, m.refused, m.unacked, m.servedBatches, m.servedBytes,
			m.streams, m.segments, m.offeredMessages, m.offeredBytes, m.flushLag, m.leading, m.leased)
	}
	return m
}
