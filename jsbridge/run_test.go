package jsbridge

import "testing"

func TestRunResults(t *testing.T) {
	b := newBridge(t, Config{})
	for _, c := range []struct{ name, code, want string }{
		{"object", `return {Code:1, Data:{Hello:'world'}}`, `{"Code":1,"Data":{"Hello":"world"}}`},
		{"nothing", `var x = 1`, `undefined`},
		{"V8.Result", `V8.Result = {Code: 1}`, `{"Code":1}`},
		{"return wins over V8.Result", `V8.Result = {Code: 1}; return {Code: 2}`, `{"Code":2}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := result(t, b, env(), c.code); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
