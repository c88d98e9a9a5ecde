// Package check decides from a history of what users did and saw whether the
// system has kept its promises. It is pure: events go in, one by one, and
// findings come out. It knows nothing of how the system works inside.
//
// # Histories
//
// A history is a list of events in the order in which they were noted. A send is
// noted before the message is given away, whatever answers it after the
// answer has come; so if one operation ended before another began, the
// history says so. It ends with what the final reader found, which reads every
// partition from offset 0 to its end after all faults have been mended, and with
// what is wrong in the store.
//
// # Violations
//
// The words are those of the field, above all of Jepsen's tests of logs:
//
//   - lost write: a message was acked, and is in its partition no more.
//   - unseen: a message was acked, and its partition cannot be read as far.
//   - vanished read: a message was read, and is there no more. It was shown
//     before it was safe.
//   - inconsistent offset: two messages at one offset; as two readers saw it, or
//     as an ack says and a reader saw.
//   - duplicate: a message that was sent once is there twice.
//   - poll skip: a reader was given an offset beyond the one that follows.
//   - non-monotonic poll: a reader was given an offset again, or an earlier one.
//   - non-monotonic send: of two messages of a publisher in a partition, the
//     later has the smaller offset, as acks say.
//   - order: the same, as they lie in the partition.
//   - aborted read: a message is there of which its publisher was told that it is
//     not, nor ever will be.
//   - phantom: a message that nobody has sent, or not there.
//   - corrupt: a message that is not as it was sent, or that cannot be read.
//   - weak ack: an ack of a lower level than was asked for.
//   - not linearizable: acks and reads of a partition's end fit no order in which
//     they could have happened one after the other, each between its call and
//     its return.
//   - unresolved: a publisher waits for an answer, or a message never got one,
//     though everything had been mended.
//   - disowned: a publisher that would have waited for ever was told that nobody
//     knows whether its message is stored, for the brokers forgot about it.
//   - unreadable: a partition that cannot be read to its end.
//   - damaged store: what is stored is not as the formats say.
//   - crash: a process ended, or failed, that nobody had harmed.
//
// # What a replicated ack does not promise
//
// A replicated ack may be lost when all replicas of its segment are lost before
// it is stored, and then that segment's seal is marked unclean. So what
// contradicts a replicated ack, or what was read before it was stored, is
// excused if both is true: the segment that lived then has an unclean seal, and
// something was done between that time and the seal to each of its replicas, or
// to the masters, without which brokers fall silent. It is counted apart.
package check
