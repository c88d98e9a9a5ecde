// Package master keeps the cluster's registry (lib/registry) on raft: one
// master by itself, or three or five that agree. Brokers join it, keep a lease
// with it and learn from it which of them leads; clients ask it where everything
// is. It touches no message and no layout: while no master leads, nothing joins
// and nobody takes over, and traffic goes on.
//
// # Leases
//
// A broker's lease is kept by the leading master, in memory, for LeaseDuration
// since the last grant; the broker counts a third less, from the moment it sent
// the heartbeat. Brokers build on this:
//
//   - L1 Between the time a broker's lease has run out by its own clock and the
//     time its expiry can be committed nothing of the broker's is left that
//     the lease protects.
//   - L2 An expired broker gets no further grant.
//
// Both hold across changes of the leading master because a new one gives every
// registered broker a full lease before it expires any, and because a master
// answers a heartbeat only when it has verified, after the heartbeat arrived,
// that it leads. The verification is a round of raft's heartbeats. An answer to
// one that was under way already counts in it, so it may speak of a time
// earlier by as much as an answer can be under way (transportTimeout) and this
// process can have been paused in between (maxPause; after a longer pause a
// master first commits an entry before it grants again). Together these are
// less than what a broker's lease ends before the master's plus the time that
// followers wait before they elect another.
//
// A leading master that was paused or suspended may find every lease run out
// when it wakes, with the heartbeats that came meanwhile still unread. Leases are
// longer by the length of the pause then, and are full ones after a pause of a
// whole lease, as after an election. That is for the brokers' sake; the promises
// above hold without it.
//
// A broker whose stream ends without a farewell is reported as silent at once:
// it may be dead, and then its segments can be taken over before its lease has
// run out. So is one that does not come to a new leading master a while after most
// others have: it may have died together with the old one.
//
// # Goroutines
//
// Raft's own apply committed commands to the registry, under the mutex of fsm,
// and announce it through hub. Master.run follows raft's leadership: while this
// master leads there is a reign, with one goroutine that grants and one that
// expires. Each Join is served by its gRPC goroutine and one that receives.
// Master.attend looks after what a member owes the others: its addresses.
// Master.mind notices when they have removed it. All end with Shutdown.
//
// # Changes of the group
//
// Members are added and removed one at a time, through raft's log (members.go). A
// new one is a member without a vote until it has caught up, so that the majority
// never counts on one that may not come. Nobody is removed whose end would leave
// the others without a majority, as far as they answer at that moment.
package master
