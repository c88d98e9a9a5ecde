package admin

import "testing"

func TestRatesAreRounded(t *testing.T) {
	for rate, want := range map[float64]float64{4.6e-11: 0, 0.12345: 0.123, 1234.5678: 1234.568} {
		if got := perSecond(rate); got != want {
			t.Errorf("perSecond(%v) = %v, want %v", rate, got, want)
		}
	}
}
