// Package layout holds the decisions about a topic's layout: which live
// segments there are, what replaces one, who owns it. It is pure: no clock, no
// goroutine, no store. lib/catalog keeps layouts in the store, lib/leader
// decides when to change them, brokers and clients find their way by them.
//
// # Words
//
// A Layout is one version of the list of a topic's live segments. A Change
// takes some of them out, each with its seal, and puts successors in their
// place; Layout.Next makes the next version of it. What went out is listed in
// the version that took it out, so all versions together are the History: for
// each partition, the chain of segments that its messages lie in.
//
// # Invariants
//
//  1. The live segments' ranges, in order, tile [0, partitions) exactly, in
//     every version (promise P6). Hence a version's successors tile exactly
//     what its sealed segments covered.
//  2. Segment ids come from a counter in the layout, so none is ever given
//     twice, and along any partition's chain they rise.
//  3. A segment names the seals that it continues from: for every partition of
//     its range exactly one, or none for any. So an empty segment that continues
//     from nothing, or from the same as its neighbour, is not merged with it
//     before it has had an owner.
//  4. A segment without owner never had a chunk, and leaves the layout as an
//     empty one; what it would have continued from passes to its successors.
//
// # Stored form
//
// Encode writes a version as JSON, the same bytes for the same version.
// Decode reads it and refuses what breaks an invariant.
package layout
