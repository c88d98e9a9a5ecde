package client

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics count what a client's publishers and subscribers do.
type metrics struct {
	acked       prometheus.Counter // messages
	failed      *prometheus.CounterVec
	sentBatches prometheus.Counter
	sentBytes   prometheus.Counter
	resent      prometheus.Counter // batches
	lateAcks    prometheus.Counter
	lookups     *prometheus.CounterVec
	buffered    prometheus.Gauge // bytes
	received    prometheus.Counter
	prefetched  prometheus.Gauge
	streams     *prometheus.GaugeVec
}

// The values of labels.
const (
	outcomeNotStored = "not_stored"
	outcomeUnknown   = "unknown"
	lookupOK         = "ok"
	lookupFailed     = "error"
	streamPublish    = "publish"
	streamSubscribe  = "subscribe"
)

// newMetrics makes the metrics and registers them, or takes over those that
// another client has registered.
func newMetrics(r prometheus.Registerer) (*metrics, error) {
	const space, sub = "smq", "client"
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: space, Subsystem: sub, Name: name, Help: help})
	}
	counters := func(name, help, label string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: space, Subsystem: sub, Name: name, Help: help}, []string{label})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: space, Subsystem: sub, Name: name, Help: help})
	}
	m := &metrics{
		acked:       counter("acked_messages_total", "Messages acked to publishers."),
		failed:      counters("failed_messages_total", "Messages that publishers gave up, by outcome.", "outcome"),
		sentBatches: counter("sent_batches_total", "Batches sent, repeats included."),
		sentBytes:   counter("sent_bytes_total", "Bytes of batches sent, repeats included."),
		resent:      counter("resent_batches_total", "Batches sent again."),
		lateAcks:    counter("late_acks_total", "Replicated acks that came too late to be believed."),
		lookups:     counters("lookups_total", "Layouts asked for, by result.", "result"),
		buffered:    gauge("buffered_bytes", "Bytes of messages that publishers hold."),
		received:    counter("received_bytes_total", "Bytes of batches received by subscribers."),
		prefetched:  gauge("prefetched_bytes", "Bytes received that subscribers have not been asked for."),
		streams: prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: space, Subsystem: sub, Name: "streams",
			Help: "Streams open or being opened to brokers, by kind."}, []string{"kind"}),
	}
	if r == nil {
		return m, nil
	}
	return m, errors.Join(
		register(r, &m.acked), register(r, &m.failed), register(r, &m.sentBatches), register(r, &m.sentBytes),
		register(r, &m.resent), register(r, &m.lateAcks), register(r, &m.lookups), register(r, &m.buffered),
		register(r, &m.received), register(r, &m.prefetched), register(r, &m.streams),
	)
}

// register replaces *c with the one that is registered already, if there is one.
func register[C prometheus.Collector](r prometheus.Registerer, c *C) error {
	err := r.Register(*c)
	var already prometheus.AlreadyRegisteredError
	if errors.As(err, &already) {
		if existing, ok := already.ExistingCollector.(C); ok {
			*c = existing
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("register the client's metrics: %w", err)
	}
	return nil
}
