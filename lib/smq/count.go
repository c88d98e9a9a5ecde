package smq

import "fmt"

// Count is a number of things in words, thing being the singular of a regular
// noun: 1 live segment, 2 live segments.
func Count[T ~int | ~int32 | ~int64 | ~uint64](n T, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
