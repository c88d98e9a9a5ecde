// Package catalog reads and writes what the store holds about topics apart from
// their messages: configurations and layout versions. The leader writes; brokers
// and clients that read the store themselves only read. It keeps no state.
//
// # Files
//
//	/topics/<namespace>/<topic>/topic.json                  configuration, or that the name is free again
//	/topics/<namespace>/<topic>/<topic-id>/layout/<v>.json  layout version v, in 20 digits, from 1 without gap
//
// # How they change
//
// A topic.json is only ever replaced on condition of the version read, never
// removed: deleting a topic replaces its configuration by a note that it is
// deleted, creating one of the same name replaces the note, altering one replaces
// its configuration. So a process that was paused in the middle of any of these
// cannot undo what others did meanwhile, as a late removal would. What remains of
// a deleted topic is that note.
//
// A layout version is created if absent, so of several leaders one writes it,
// and WriteVersion tells which. The first version may be missing: a topic
// exists as soon as its configuration does.
//
// # Damage
//
// A file that is there and cannot be understood is damage to one topic (see
// IsDamage): its error names the file, and whoever goes through all topics goes
// on with the next.
package catalog
