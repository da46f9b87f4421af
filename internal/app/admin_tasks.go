package app

import (
	"context"
	"strings"
	"time"

	"apiengine/engine"
	"apiengine/server"
	"apiengine/store/tenantdb"
	"apiengine/tasks"
)

// taskAPI implements server.Tasks.
type taskAPI struct{ runner *tasks.Runner }

func (a taskAPI) Submit(ctx context.Context, tenant string, c engine.Caller, o server.TaskOrder) (server.Task, bool, error) {
	t, err := a.runner.Submit(ctx, tenant, c, tasks.Order(o))
	return taskView(t), t.New, err
}

func (a taskAPI) Get(ctx context.Context, tenant, id string, after time.Time) (server.Task, error) {
	t, err := a.runner.Get(ctx, tenant, id, after)
	return taskView(t), err
}

func (a taskAPI) List(ctx context.Context, tenant string, f server.TaskFilter) ([]server.Task, error) {
	list, err := a.runner.List(ctx, tenant, tenantdb.TaskFilter{State: strings.ToLower(f.Status), API: f.API, Source: f.Source, Key: f.Key,
		Owner: tasks.OwnerOf(f.Owner), Before: f.Before, Max: f.Max})
	out := make([]server.Task, len(list))
	for i, t := range list {
		out[i] = taskView(t)
	}
	return out, err
}

func (a taskAPI) Cancel(ctx context.Context, tenant, id string) (server.Task, error) {
	t, err := a.runner.Cancel(ctx, tenant, id)
	return taskView(t), err
}

func (a taskAPI) Retry(ctx context.Context, tenant, id string) (server.Task, error) {
	t, err := a.runner.Retry(ctx, tenant, id)
	return taskView(t), err
}

func taskView(t tasks.Task) server.Task {
	out := server.Task{Id: t.ID, ApiEngineKey: t.ApiEngineKey, Status: t.Status, Slice: t.Slice, Attempt: t.Attempt, MaxAttempts: t.MaxAttempts,
		Current: t.Current, Total: t.Total, Progress: t.Progress, Msg: t.Msg, Checkpoint: t.Checkpoint, Result: t.Result, Error: t.Error,
		Source: t.Source, ConcurrencyKey: t.ConcurrencyKey, Priority: t.Priority, CreatedAt: t.CreatedAt, StartedAt: t.StartedAt,
		EndedAt: t.EndedAt, NextRunAt: t.NextRunAt, Eta: t.Eta, Why: t.Why, Owner: t.Owner}
	for _, l := range t.Log {
		out.Log = append(out.Log, server.TaskLine(l))
	}
	return out
}

// scheduleAPI implements server.Schedules.
type scheduleAPI struct{ runner *tasks.Runner }

func (a scheduleAPI) List(ctx context.Context, tenant string) ([]server.Schedule, error) {
	list, err := a.runner.ListSchedules(ctx, tenant)
	out := make([]server.Schedule, len(list))
	for i, s := range list {
		out[i] = server.Schedule(s)
	}
	return out, err
}
