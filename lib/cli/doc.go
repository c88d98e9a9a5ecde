// Package cli is what the five binaries have in common at their outer edge:
// streams, flags that every command knows, configuration, signals, exit codes,
// and the printing of lists, errors and progress.
//
// # Rules of output
//
//   - Standard output carries data and nothing else. Acks, progress, warnings
//     and errors go to standard error.
//   - Each stream decides for itself whether it is a terminal. Off a terminal
//     there is no colour and no animation.
//   - An error is one line: the binary's name, what was tried on what, why. No
//     usage text follows an error that happened while running.
//   - Whoever reads our output may leave at any time. A closed pipe ends a
//     command quietly.
//
// # Exit codes
//
// One table (exit.go) maps the sentinels of lib/smq to exit codes; ExitCodes
// states them for the help texts.
//
// # Precedence
//
// A flag's value is the one given on the command line, else the one of its
// environment variable, else the one of the configuration file, else the
// default. Every flag has a variable and a place in the file, by rule: the
// global flag --log-format is SMQ_LOG_FORMAT and the key log-format; the flag
// --partitions of smq-admin topic create is SMQ_ADMIN_TOPIC_CREATE_PARTITIONS
// and the key partitions below smq-admin, topic and create.
package cli
