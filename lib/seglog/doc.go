// Package seglog is the log of one segment in the store: chunks that its owner
// appends, seals, recovery, and readers. It decides nothing about who should
// own what; it makes sure that whoever does cannot break the log.
//
// A Log is a segment in the hands of its owner. SealStore ends a segment from
// the store alone, whatever its owner does. A Sealed segment and a Log are
// Sources that a Cursor reads. Verify checks a segment whole.
//
// # Format
//
// A segment is a folder of chunks, files that are numbered from 0 without a gap
// and named by 20 digits and ".log". A chunk is made of
//
//	blocks    one for each partition that has batches in it, by partition:
//	          the partition's batches (see lib/record), one after the other
//	footer    the message smq.v1.ChunkFooter, in protobuf
//	4 bytes   length of the footer message, big-endian
//	4 bytes   CRC-32C of the footer message, big-endian
//	8 bytes   "smqchnk1"
//
// so that it can be read from its end with nothing but the file. The footer
// holds, among other things (see lib/smqpb/chunk.proto):
//
//	format          1, of this whole layout
//	segment, chunk, topic id, [lo, hi)
//	writer          16 random bytes, one value for each Log and each sealer
//	previous        SHA-256 of the footer message of the chunk before
//	positions       [first, end) of the batches in this chunk; a batch's
//	                position is its place in the segment, over all partitions
//	blocks          where each partition's block is, its first and end offset,
//	                and of each batch: length, count, CRC, position, timestamp
//	producers       what is remembered of those that the chunk's batches are of
//	sealed          this is the segment's last chunk
//	snapshot        in chunk 0, in each whose number 64 divides, and in seals:
//	                every partition's end offset and latest times, all that is
//	                remembered of producers, and the seals of the predecessors
//
// Chunk 0 is the opening and holds no batches. Its snapshot is what the
// predecessors' seals say of the segment's range. A segment that is sealed
// before it was opened has its seal as chunk 0. Batches in a chunk bear their
// final base offset, and the segment's id as leader epoch.
//
// # Invariants
//
// They rest on two things. The store's: of all attempts to create a name at most
// one is applied, whenever it arrives, and names of chunks are never freed while
// the topic lives. And this package's: who creates what (1 to 4).
//
//  1. Unsealed chunks are the owner's: all bear the writer id of chunk 0. Open
//     returns a Log only if chunk 0 has its own writer id and footer hash (see
//     ownership), each Open draws a new id, and sealers write only seals.
//  2. Chunk k+1 is created only after chunk k is there. The owner creates in
//     order: a flush waits for the one before (flush.after). A sealer creates
//     behind the last chunk that it has read. So chunks have no gap, and to
//     list them tells all.
//  3. What an owner attempts to create as chunk k has the same bytes in every
//     attempt (freeze builds them once) until it is certain that none will be
//     applied; only a full store that was never ambiguous about k makes it
//     so, and then the owner drops k and all behind it, and goes on from what
//     is stored (refuse, rollBack). So when k is taken, by the same writer id
//     and hash, it is the owner's, however many attempts were answered by
//     silence; by anything else, none of its attempts was or will be applied.
//  4. Nothing follows a seal. An owner creates k+1 only behind a chunk k of its
//     own that is not sealed: Log stops at its own seal (commit) and at
//     another's (fenced), and drops what is in flight. A sealer creates only
//     behind an unsealed chunk (look); when its number is taken it looks again.
//  5. A chunk continues the one before it: the hash chain, positions, and each
//     partition's offsets. The owner freezes from the state and the footer of
//     the chunk frozen before; if that one turns out not to be stored, the new
//     one is dropped (3, 4). A sealer seals from the state it has read.
//     Recovery, cursors and Verify check the chain and never skip a break.
//  6. Offsets are dense, from 0, over all segments of a partition, and never
//     come from anywhere but chunks. Append assigns them under the lock under
//     which it queues, freeze derives them again from the frozen state and fails
//     if they differ, and a successor starts from the ends in its predecessors'
//     seals (openingState), behind which nothing can come any more (4).
//  7. A batch is acked as Stored only when a chunk that holds it is in the store:
//     commit comes after create returned nil or found the log's own chunk. (As
//     Replicated: see Followers.) A log that
//     is fenced acks what lies before the seal's end position and nothing else.
//     This needs no clock and no lease: a paused owner's next create fails.
//  8. A batch that was told smq.ErrSegmentSealed or smq.ErrNoSpace is not in the
//     segment: it was not accepted, or lies behind the seal's end position, or
//     was dropped by 3. One that was told smq.ErrUnavailable (Close) may be.
//     An earlier attempt of the same batch has an answer of its own.
//  9. A producer's sequence is stored once, and without a gap before it: check
//     judges every batch by the last five of its producer, which footers and
//     snapshots carry from chunk to chunk and from segment to segment, so that
//     retries meet the memory of their originals wherever the partition went. A
//     repeat whose original is not stored yet waits for it and shares its fate
//     (Log.repeats): a duplicate is never acked before its original.
//     Producers that were forgotten, idle for long or too many, are refused
//     unless they start anew at sequence 0.
//  10. Readers see what is committed only, in order: the extent of a Log grows in
//     commit, behind the create, and what is in no chunk yet is shown up to
//     Log.committed, under a valid lease (recent): without one all replicas may
//     be lost, and the segment sealed without it. A reader is at the end (AtEnd)
//     only when it has passed the
//     seal.
//  11. Every batch that was appended gets exactly one ack: whoever takes it out
//     of the log under the lock (commit, stop, refuse, takeRepeats) answers it.
//     Its memory is given back at the same time, or earlier for a repeat.
//  12. Nothing is assumed of what cannot be read: recovery and sealing fail with
//     the store's error, or with smq.ErrCorrupt.
//
// lib/sim searches for runs that break them.
//
// # Followers
//
// A segment may have followers (Follower), which hold in memory what its owner
// has accepted and not stored. Then a batch is committed, shown to readers and
// acked as Replicated, once every follower holds it and the owner's lease is
// valid, or once it is stored. What is committed cannot vanish as long as one
// replica lives or counts as alive:
//
//  13. A follower holds every position from some stored one on, without a gap, up
//     to what it has told its owner (Follower.Append refuses anything else), and
//     lets go of a position only on the owner's word that it is stored.
//  14. A follower that is fenced takes nothing more, so the owner's committed
//     position passes what that follower holds only by the store (advance takes
//     the least of all that followers hold).
//  15. A follower writes nothing but a seal, and that carries all that it holds
//     and the store does not (sealer.rest). So whichever replica ends the segment,
//     its chunks hold everything committed; and if the owner's next chunk takes
//     the number first, the follower drops what that stores and takes the next.
//  16. An owner that meets a follower's seal acks what lies before the seal's end
//     position, and nothing else (fenced): positions mean the same batches
//     everywhere, as there is one owner, which gives each of them once. It never
//     goes back to an earlier position while it has followers (creation.failed).
//  17. Nobody seals such a segment from the store alone unless the leases of the
//     owner and of every follower have run out; that seal is Unclean. (An owner
//     whose log has ended without a seal, and says so, has nothing left that its
//     lease could cover: it can never open the segment again, as chunk 0 is that
//     log's.) But a segment that was never opened holds nothing, as its owner
//     accepts nothing before chunk 0 is its own: a seal created as chunk 0 proves
//     that, and waits for no lease. Without its lease an owner commits by the store
//     only and acks no repeat as Replicated (Log.commits), and a follower seals
//     unasked. Both count their leases a second short.
//  18. While the oldest batch that is not stored is older than Limits.MaxUnstored
//     nothing is committed but by the store.
//
// # Goroutines
//
// Log.mu guards the log's present: what is pending, in flight, committed. It is
// never held during a call of the store or of a Sink. Beyond the callers of its
// methods, each Log has
//
//   - the freezer, at most one, while there is something to freeze (kick starts
//     it, Log.freezing says that it runs). It alone turns pending batches into
//     chunks, in order, and owns the frozen state, the previous footer and
//     lastDone; after a refusal it is also the one that goes back to what is
//     stored.
//   - one for each chunk in flight, at most Limits.Inflight (store): it uploads,
//     beside the others, waits for the chunk before (flush.after), creates, as
//     one of at most 16 in the process (Shared), commits, and acks. Closing
//     flush.done lets the next one create, so acks keep the order of chunks.
//   - a timer that asks for a roll at Limits.MaxAge.
//
// All of them end with the log: stop cancels their context. Sinks are called by
// the chunks' goroutines, by whoever stops the log, and by Append's caller, for
// what it refuses or knows to be stored already.
//
// Loads of chunks are shared by those who wait for the same one, in a goroutine
// that ends within loadTimeout; what they loaded is in the cache, which the
// segments of a process share. A Cursor belongs to one goroutine.
package seglog
