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
// # Splitting and merging
//
// Plan looks at a topic every second: its layout, what its segments' owners
// measure, its Policy, and the Memory of the looks before. It returns Decisions
// for lib/leader to carry out, and Notes about what it leaves alone though it is
// above the threshold. The rules:
//
//   - A segment whose average has been above the threshold for SplitAfter, and
//     whose traffic still is (see trend), becomes as many pieces as make each
//     carry no more than five eighths of the threshold. They are cut where the
//     measured load divides evenly, whatever the number of partitions.
//   - A partition that outweighs a piece becomes a segment by itself, if that
//     takes a tenth off the segment, or a quarter of the threshold. If it does
//     not, the partition carries nearly all: a hot key, which is noted.
//   - Neighbours that together have been below half the threshold for MergeAfter
//     are merged, the quietest first, any number of them as long as the whole
//     stays below. So the traffic has to double before a merged segment splits,
//     and to halve before the pieces of a split merge.
//   - A merge that a split undoes within a minute was a mistake: the topic's
//     merges wait twice as long from then on, up to 16 times, and half an hour
//     without mistakes takes one doubling back.
//   - Between two changes of the same partitions lies the CoolDown. A roll, or the
//     first assignment, is none. What a segment measures in the first seconds
//     after a change counts for nothing.
//   - There are never more than MaxSegments, counting what is under way. Above
//     it, after it was lowered, the quietest neighbours are merged whatever their
//     load. Below MinSegments the largest are split, measured or not.
//   - A segment of unknown load is neither split nor merged otherwise; one that a
//     change is under way for, or whose owner is dead or leaving, not at all. A
//     segment without owner is silent.
//   - While one broker only takes segments, load splits a topic into two at most:
//     two flushes overlap, and there is nowhere to go with more.
//
// Successors go to the brokers that are expected to carry least (Expected),
// where a decision counts from the moment that it is made. Rebalance moves
// segments between brokers that carry too unequal traffic, a few at a time, and
// only where the receiver ends up with no more than the giver, so that nothing
// moves back.
//
// All of this goes by averages that decay over three to five seconds. Longer
// ones would react too late, much shorter ones would take the pause of a change
// for silence.
//
// # Stored form
//
// Encode writes a version as JSON, the same bytes for the same version.
// Decode reads it and refuses what breaks an invariant.
package layout
