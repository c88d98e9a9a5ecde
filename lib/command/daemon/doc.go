// Package daemon is what smq-master and smq-broker have in common as processes:
// addresses to listen on and to advertise, the HTTP endpoints, the file that
// tells the addresses, and the service manager's notify socket.
package daemon
