package apis

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

var rateForm = regexp.MustCompile(`^([1-9][0-9]{0,6})/([smh])$`)

var ratePer = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}

// ParseRate reads a RateLimit such as 60/m: count calls in each span of per, which is a
// second, a minute or an hour. Count is from 1 to 9999999.
func ParseRate(text string) (count int, per time.Duration, err error) {
	m := rateForm.FindStringSubmatch(text)
	if m == nil {
		return 0, 0, &FieldError{Field: "RateLimit", Msg: fmt.Sprintf("must be a number of calls and a unit, like 100/s, 60/m or 1000/h, not %q", text)}
	}
	count, err = strconv.Atoi(m[1])
	return count, ratePer[m[2]], err
}
