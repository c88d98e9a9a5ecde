// Package admin is smq-admin: administration at a terminal and in scripts.
//
// Commands that ask the cluster live in a file for each noun (topic, broker,
// master, segment); log reads chunks and whole topics with nothing but the
// store; doctor asks everybody and says what is wrong; up and demo run clusters
// on this machine.
package admin
