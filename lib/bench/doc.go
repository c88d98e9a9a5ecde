// Package bench measures a cluster: how many messages a second it takes and
// gives, and how long they are on their way.
//
// # Time
//
// A run with a rate is an open loop: message i is due at i/rate, whatever has
// become of the ones before it, and its latency counts from then. So a stall is
// in the latency of every message that was due meanwhile, and not only of the
// one that was under way (what is known as coordinated omission). Without a rate
// messages follow one another as fast as they are taken, or with so many under
// way at most, and their latency counts from the moment they were offered.
//
// All times are taken in this process, from one clock. What begins in the warm-up
// is not counted.
//
// # Cost
//
// The path of a message allocates nothing: a publisher carries the message's
// time in its token, a message to be received in its first bytes, and latencies
// go into histograms of fixed size.
//
// # Goroutines
//
// Each producer is a goroutine with a publisher of its own, whose results come
// on another one; a receiver is one more. They share nothing but counters and,
// each for a moment, the lock of a histogram.
package bench
