// Package registry is what the masters agree on: which brokers are in the
// cluster, which one leads, and where the masters are. It is a pure state
// machine: the same commands in the same order give the same state, so that
// lib/master can put it on raft. Leases are not in it; a lease that has run out
// arrives as a command.
//
// # Leader
//
// After every command the leader is, in this order of preference,
//
//   - the present one, while it is fit;
//   - of the fit brokers the one that joined first;
//   - the present one, while it is registered;
//   - of all brokers the one that joined first;
//   - nobody.
//
// A broker is fit unless it is draining or silent. So a draining leader hands
// over at once when somebody else can take over, and a cluster whose last
// brokers all drain is led to the end. Leading needs no lease: whatever a leader
// does is decided by the store, so that two of them do no harm.
//
// # Invariants
//
//   - R1 At most one broker leads, and it is registered.
//   - R2 The term rises with every change of the leader and never falls.
//   - R3 A broker's id is registered once. An id that was ever told the number
//     of its registration is never registered again, for all time; any other
//     one not until 1,024 others have expired.
//   - R4 The cluster's id and the store's URL never change once they are set.
//   - R5 Equal states have equal snapshots, and a snapshot restores to a state
//     equal to the one that it was taken of.
//
// # Expired brokers
//
// R3 needs no endless list. Registrations are numbered, and a broker that comes
// back names its number. If the registry has given that number and the broker
// is not registered, its time is over. Numbers start where Init says, by the
// clock; a number from before that, or one not given yet, comes from a registry
// that has been lost, and the broker registers as if it were new. Only a broker
// that comes back without having heard its number, and so never held a lease,
// needs to be recognised by its id: for that the last expired ids are kept.
package registry
