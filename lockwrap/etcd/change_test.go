package etcd

import (
	"context"
	"errors"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"apiengine/lockwrap"
)

func TestClassify(t *testing.T) {
	for _, c := range []struct {
		err  error
		done bool // nothing was changed
	}{
		{rpctypes.ErrPermissionDenied, true},
		{rpctypes.ErrInvalidAuthToken, true},
		{rpctypes.ErrRequestTooLarge, true},
		{rpctypes.ErrLeaseNotFound, true},
		{rpctypes.ErrNoSpace, false},
		{rpctypes.ErrTimeout, false},
		{rpctypes.ErrTimeoutDueToConnectionLost, false},
		{rpctypes.ErrTooManyRequests, false},
		{status.Error(codes.Unavailable, "error reading from server: EOF"), false},
		{context.DeadlineExceeded, false},
	} {
		var no *lockwrap.BackendError
		var unknown *lockwrap.UnknownError
		err := classify("acquire", c.err)
		if errors.As(err, &no) != c.done || errors.As(err, &unknown) == c.done || !errors.Is(err, c.err) {
			t.Errorf("%v: %T", c.err, err)
		}
	}
}
