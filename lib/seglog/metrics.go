package seglog

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts what a broker's segments do.
type metrics struct {
	storedBatches  prometheus.Counter
	storedMessages prometheus.Counter
	storedBytes    prometheus.Counter
	chunks         prometheus.Counter
	buffered       prometheus.Gauge
	replicated     prometheus.Gauge
	flushSeconds   prometheus.Histogram
	storeErrors    *prometheus.CounterVec
	cacheHits      prometheus.Counter
	cacheMisses    prometheus.Counter
}

func newMetrics(r prometheus.Registerer) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := &metrics{
		storedBatches:  counter("smq_stored_batches_total", "Batches brought into the store."),
		storedMessages: counter("smq_stored_messages_total", "Messages brought into the store."),
		storedBytes:    counter("smq_stored_bytes_total", "Bytes of chunks brought into the store."),
		chunks:         counter("smq_stored_chunks_total", "Chunks created."),
		buffered: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "smq_buffered_bytes", Help: "Bytes received and not stored yet."}),
		replicated: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "smq_replica_bytes", Help: "Bytes held for segments that other brokers own."}),
		flushSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "smq_flush_seconds", Help: "From the freezing of a chunk to the moment it is stored.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16)}),
		storeErrors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "smq_store_errors_total", Help: "Failed attempts to bring a chunk into the store, by step."}, []string{"step"}),
		cacheHits:   counter("smq_chunk_cache_hits_total", "Reads of a partition's part of a chunk that were answered from memory."),
		cacheMisses: counter("smq_chunk_cache_misses_total", "Reads of a partition's part of a chunk that went to the store."),
	}
	if r != nil {
		r.MustRegister(m.storedBatches, m.storedMessages, m.storedBytes, m.chunks, m.buffered, m.replicated, m.flushSeconds, m.storeErrors, m.cacheHits, m.cacheMisses)
	}
	return m
}

func (m *metrics) stored(f *flush) {
	var messages int64
	for _, b := range f.footer.Blocks {
		messages += b.EndOffset - b.FirstOffset
	}
	m.chunks.Inc()
	m.storedBatches.Add(float64(len(f.entries)))
	m.storedMessages.Add(float64(messages))
	m.storedBytes.Add(float64(f.size))
	m.flushSeconds.Observe(time.Since(f.started).Seconds())
}

func (m *metrics) storeError(step string) { m.storeErrors.WithLabelValues(step).Inc() }
