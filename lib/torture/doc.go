// Package torture finds out whether the system keeps its promises when
// everything around it fails. It starts a cluster of real processes, uses it as
// clients do, and meanwhile kills, pauses, cuts off, slows down, starves and
// drains its parts. Then it mends everything, reads everything back, and has
// package check judge what users saw.
//
// # Parts
//
// Masters and brokers are processes of their own, each reached through doors of
// a wire.Network, whose addresses they advertise. So are the filers of a store
// that is reached by the network, and so are the clients here, each a part by
// itself. A process takes other ports whenever it starts; its doors stay.
//
// # Faults
//
// A plan says which fault comes when and how long it lasts; it is a pure function
// of the seed. Whom a fault hits ("the leader", "an owner") is found out when it
// comes, so two runs with one seed are alike, not the same. Faults overlap, but a
// process is killed, paused, drained or starved by one at a time. All of them
// are over when the time of faults is.
//
// What cannot be done to a process from outside is not done: a store in a
// directory does not fail by itself, so there its users are denied files instead.
// A SeaweedFS that this package has started is paused and killed as well.
//
// # Use
//
// Publishers number their messages and differ in what they wait for, how they
// batch, and when they give up; now and then one ends without waiting for
// answers. Readers follow, begin anew, and go back. One more topic has few
// messages, and its ends are asked for all the time, to be checked for
// linearizability.
//
// # What is kept
//
// Dir has history.ndjson, all events in the order in which they were noted;
// logs/, what each process and the clients here wrote; and the masters' data and the store, if they are
// directories. CheckHistory checks a history again.
package torture
