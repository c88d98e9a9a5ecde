// Package envelope is the JSON form of a message that smq-sub writes and
// smq-pub reads.
//
// # Format
//
// One JSON object a message, a line each:
//
//	{"topic":"orders","partition":3,"offset":17,"timestamp":1767225600000,
//	 "key":"k","value":"v","headers":[["name","value"]]}
//
// The timestamp is in milliseconds since 1970. Keys, values, and names and
// values of headers are strings when they are UTF-8, and {"base64":"…"}
// otherwise; null, "" and "null" are three different things. What is written
// is read back as the same bytes.
//
// Read, only the value must be there; members with other names are ignored, so
// that members can be added.
package envelope
