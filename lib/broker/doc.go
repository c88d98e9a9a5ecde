// Package broker is a broker: it joins the cluster, owns the segments that the
// layouts in the store give to it, takes messages into them and serves messages
// out of them and of every sealed segment. It keeps nothing that the store does
// not have.
//
// # Identity
//
// A broker has an id for as long as it renews its lease with the masters
// (member.go). When the lease has run out there, the id is dead: the broker
// seals what it owns and starts over with a fresh id, in a new life. When no grants
// come it asks whether another master leads by now, and joins there (doubt.go).
//
// # Who may append
//
// The stored layout names a segment's owner, and the segment's first chunk makes
// it the owner for good (lib/seglog). A broker opens a segment when it is first
// written to or read from, if the layout says that it is its own (segments.go).
// What it knows of a layout may be old. That does no harm: a successor is only
// ever written after its predecessor's seal, so whoever opens or appends to a
// segment that has one finds the seal.
//
// A segment that is full, or was sealed by somebody else, is reported to the
// leading broker until the layout no longer lists it (watch.go).
//
// # Streams
//
// Publish (publish.go): one goroutine receives frames, reserves memory for them
// and appends them to logs; the handler's own goroutine sends what the logs have
// acked. Nothing is done for each message, and little for each batch. A
// publisher that does not read its acks is not read from.
//
// Subscribe (subscribe.go): a session divides its partitions among feeds, one
// for each segment that is read; a partition moves on to the feed of the next
// segment when one ends. Feeds read a bounded amount ahead of what the
// handler's own goroutine has sent.
//
// Replicate: an owner has one stream to each broker that follows some segment of its
// (links.go, link.go), which carries batches and, several times a second, a sign of life. A
// follower (replicate.go, followers.go) seals what it follows when the owner gives none. A stream
// belongs to one life of either.
//
// # Goroutines
//
// Besides the streams': one renews the lease and one hears what the masters tell at
// once, one takes part in leading, one samples loads, one reports them to the
// leader, two look whether idle segments have been sealed by others (probe.go), two
// look after what is followed in the present life (followers.go, sweep.go), one
// sends to each follower (link.go), and one for each open segment waits for its
// end. Close ends all of them and waits; Drain hands the segments over before.
package broker
