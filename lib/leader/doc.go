// Package leader is what the leading broker does for the whole cluster: it
// keeps topics, decides which broker owns which partitions, and replaces
// segments that are sealed or whose owner is gone.
//
// # State
//
// A leader holds none of its own. Topics and layouts are in the store
// (lib/catalog); what it has in memory is a copy, loaded as it is asked for and
// by the sweep. A new leader starts with nothing, and finishes what it finds
// half done.
//
// # Why two leaders do no harm
//
// Every step is either conditional in the store or can be repeated. A layout
// version is created if absent, so of two leaders one writes it, and the other
// loads it and decides anew; whoever meets a version of a later term than its
// own stops leading. A segment's successor is written only after its seal was
// read, so at every moment the store, not a leader, says who may append. A
// topic is created and deleted by a conditional replacement of its
// configuration.
//
// # Changing a layout
//
// All changes of a topic's layout go through its queue (change.go). Whatever
// has queued while a version is written goes into the next one, so that a
// broker's thousand segments move in a few versions.
//
// # Goroutines
//
// Start runs the sweep over all topics, the failover of dead brokers' segments
// and the collection of loads. A topic's queue has a goroutine while there is
// something in it. What several requests need at once (loading a topic, sealing
// a segment) runs once, in the leader's name, and outlives the request that
// began it. Stop ends all of them and waits.
package leader
