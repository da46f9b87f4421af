package server

import "apiengine/fault"

// status is the contract's table (section 4.3). A Kind that is missing here is a defect
// of the platform and gets 500.
var status = map[fault.Kind]int{
	fault.BadRequest:            400,
	fault.LockKeyMissing:        400,
	fault.IdempotencyKeyMissing: 400,
	fault.Unauthenticated:       401,
	fault.Forbidden:             403,
	fault.HTTPStopped:           403,
	fault.NotFound:              404,
	fault.Disabled:              404,
	fault.MethodNotAllowed:      405,
	fault.LeaseLost:             409,
	fault.StaleFence:            409,
	fault.IdempotencyInProgress: 409,
	fault.VersionConflict:       409,
	fault.PayloadTooLarge:       413,
	fault.IdempotencyMismatch:   422,
	fault.LockBusy:              423,
	fault.RateLimited:           429,
	fault.QueueFull:             429,
	fault.TenantBusy:            429,
	fault.ScriptError:           500,
	fault.ScriptSyntax:          500,
	fault.ResultInvalid:         500,
	fault.LimitMemory:           500,
	fault.LimitStack:            500,
	fault.LimitDepth:            500,
	fault.LimitOutput:           500,
	fault.LimitRegex:            500,
	fault.OutcomeUnknown:        500,
	fault.Internal:              500,
	fault.Overloaded:            503,
	fault.LockUnavailable:       503,
	fault.StoreUnavailable:      503,
	fault.Draining:              503,
	fault.Timeout:               504,
	fault.Canceled:              499, // nobody is there to read it; proxies' logs know the number
}

func statusOf(k fault.Kind) int {
	if n, ok := status[k]; ok {
		return n
	}
	return 500
}

// retried are the kinds whose answer says when to come again.
func retried(k fault.Kind) bool {
	switch statusOf(k) {
	case 423, 429, 503:
		return true
	}
	return k == fault.IdempotencyInProgress
}

// The envelope's codes that clients of the original platform look at.
const (
	codeOK          = 1
	codeRefused     = 0
	codeNotSignedIn = 1001
	codeWrongTenant = 1002
)
