// Package smq is the vocabulary of the system: topics, partitions, ranges,
// segments, offsets, identifiers and the errors that every other package
// speaks in. It imports only the standard library and holds no behaviour
// beyond parsing, printing and comparing.
//
// # Words
//
// A topic is divided into a fixed number of partitions, each an ordered log of
// messages with dense offsets from 0. A segment is the unit of writing: one
// topic, one range of its partitions, one owner for its whole life. When any of
// these must change the segment is sealed and successors take over. The list
// of live segments of a topic is its layout; live ranges tile the partitions
// exactly.
package smq
