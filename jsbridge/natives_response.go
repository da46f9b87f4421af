package jsbridge

import "time"

// responseFuncs are V8.Response: what the script says about the HTTP answer.
func responseFuncs() []Func {
	return []Func{
		Fn("Response.Status", "sets the HTTP status, 200 to 599",
			func(c *Call, in struct{ Status int64 }) (any, error) {
				if in.Status < 200 || in.Status > 599 {
					return nil, argErrorf("V8.Response.Status: %d is not from 200 to 599", in.Status)
				}
				c.run.said.Status = int(in.Status)
				return undefined{}, nil
			}),
		Fn("Response.Header", "sets a header of the answer",
			func(c *Call, in struct{ Name, Value string }) (any, error) {
				if c.run.said.Header == nil {
					c.run.said.Header = map[string]string{}
				}
				c.run.said.Header[in.Name] = in.Value
				return undefined{}, nil
			}),
		Fn("Response.Redirect", "answers with a redirect to url",
			func(c *Call, in struct {
				URL string `js:"url"`
			}) (any, error) {
				c.run.said.Redirect = in.URL
				return undefined{}, nil
			}),
	}
}

// remaining is the time until the run is interrupted.
func (r *run) remaining() time.Duration { return max(0, time.Until(r.limits.Deadline)) }
