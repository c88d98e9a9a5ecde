// Package rpc is how SMQ's processes talk: gRPC servers and connections with
// one set of limits, errors that keep their meaning across the wire, the data
// plane's frames, and the way from a list of masters to whoever can answer.
//
// # Errors
//
// A handler returns errors that wrap the sentinels of lib/smq; the caller at
// the other end gets an error with the same text for which errors.Is finds the
// same sentinel. One table (errors.go) names each sentinel and gives its gRPC
// code. Interceptors on both ends translate, for calls and for streams, so that
// nobody else sees a gRPC status.
//
// # Frames
//
// Batches pass protobuf by. A frame of the data plane is
//
//	0x0a  uvarint head length     head, a protobuf message
//	0x12  uvarint payload length  payload, raw batches one after the other
//
// where an empty payload is left out. This is also the wire form of a protobuf
// message with the head as field 1 and the payload, bytes, as field 2, so that
// a client in any language can speak it with its ordinary gRPC library. Here a
// codec that both ends are forced to use writes the caller's slices to the
// connection as they are, and copies what it receives once, into memory that
// the receiver owns. A frame is no longer than 32 MiB, and its head has no more
// than 262,144 fields, each time that one is repeated counted.
//
// # Peers that come back
//
// Whoever is out of reach is tried again with every call, so that nobody takes a
// process that was started anew for dead because it was dead a moment ago: its
// address reaches others, in a layout or as the leader's, at the time at which it
// is needed.
//
// # Silence
//
// Every second without traffic a server pings its peer, and a peer that stays
// silent for about three seconds is disconnected. The dialing side watches too:
// see Dial. Whatever was under way then ends with smq.ErrUnavailable. Who may know
// somebody else to turn to hears of a silence before that: see Conns.OnQuiet.
package rpc
