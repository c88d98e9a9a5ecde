// Package smqpb holds the protocol's messages, generated from the .proto files
// beside it. Fields are only ever added; numbers are never used again.
package smqpb

//go:generate go tool -modfile=../../tools/dev/go.mod buf generate ../.. --template ../../buf.gen.yaml
