// Package leader is what the leading broker does for the whole cluster: it
// keeps topics, decides which broker owns which partitions, and replaces
// segments that are sealed or whose owner is gone.
//
// # State
//
// A leader holds none of its own. Topics and layouts are in the store
// (lib/catalog); what it has in memory is a copy, loaded as it is asked for, as
// brokers report segments, and by the sweep. A new leader starts with nothing,
// and finishes what it finds half done. What it forgets besides is what brokers
// tell again every second: their segments' loads.
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
// A change replaces segments by others over the same partitions, each of them
// sealed before, in the store. Who replaces a segment holds it (hold.go), so that
// one leader does one thing to it at a time; others wait, or are refused. Two
// leaders meet in the layout's versions: a change that finds a segment replaced
// does not happen.
//
// Splits, merges and moves (planned.go) have the owners seal, as in a drain, so
// that publishers of those partitions wait for a flush and nobody else waits at
// all. They happen whole or not: a segment that is sealed while another one is
// not gets a plain successor.
//
// A broker that drains seals what it has open by itself. What it was given and
// has not opened, it may not even know of: it asks for that to be handed over
// (handover.go), until the layouts list nothing of it.
//
// # Damage
//
// A topic of which a file is damaged is noted, told of, and left alone until the
// file is mended (damage.go); all others go on.
//
// # Loads
//
// Brokers report what their segments take in (loads.go); traffic.go keeps that
// for each topic, with what is expected of segments that have not been reported
// yet. Every second lib/layout's planner looks at each topic (scale.go). Loads
// decide when something is done, never what is safe.
//
// # Errors
//
// What a request was for is known to whoever made it, and added there. So the
// answer to a call says only what it failed at, and why.
//
// # Watchers
//
// A watcher (watch.go) is sent a snapshot and then what has changed since the
// revision it has seen (hub.go). Nothing is queued for it.
//
// # Goroutines
//
// Start runs the sweep over all topics, the failover of dead brokers' segments
// and the looks at all loads, which start planned changes, up to maxPlanned at a
// time. A call of Watch runs in its caller's goroutine, and Stop does not wait
// for one that hangs. A topic's queue has a goroutine while there is
// something in it. What several requests need at once (loading a topic, sealing
// a segment) runs once, in the leader's name, and outlives the request that
// began it. Stop ends all of them and waits.
package leader
