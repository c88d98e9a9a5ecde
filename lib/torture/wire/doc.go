// Package wire is a network on one machine that can be broken on purpose. Each
// part of a system is reached through a door of its own, a TCP relay in front of
// it; rules say which bytes pass, from which part to which other, and how
// fast.
//
// # Rules
//
// A rule holds for bytes that travel from some parts to others, whoever of them
// has opened the connection, until it is lifted. Bytes that are cut off are not
// lost but wait, as they do in a TCP that goes on resending; they arrive late,
// when the rule is lifted, also if their sender has given up or died by then.
// What a sender may have under way is bounded, so it is held up in the end. Rules
// add up: what any of them cuts is cut, delays sum, the lowest rate counts.
//
// # Who is who
//
// A connection's destination is its door's part. Its source is known when this
// process has dialed (see Network.Dialer), and otherwise if the system tells
// which process holds the other end (see Processes). Bytes from and to an
// unknown part obey only rules that hold for all.
//
// # Goroutines
//
// Four for each connection, which end with it; one for each door. Network.Close
// ends all.
package wire
