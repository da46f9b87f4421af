package app

import (
	"context"
	"fmt"
	"time"

	"apiengine/internal/client"
)

type taskCmd struct {
	Submit    taskSubmitCmd    `cmd:"" help:"Run an API as a background task."`
	List      taskListCmd      `cmd:"" help:"List tasks, newest first, and why they wait."`
	Show      taskShowCmd      `cmd:"" help:"Show a task and its log."`
	Cancel    taskCancelCmd    `cmd:"" help:"End a task; a slice that runs is rolled back."`
	Retry     taskRetryCmd     `cmd:"" help:"Make a task that ended without success due again, behind what it has committed."`
	Schedules taskSchedulesCmd `cmd:"" help:"Show which APIs run by themselves, and when next."`
}

type taskSubmitCmd struct {
	remote
	call
	IdempotencyKey string        `help:"The same key and order is the same task."`
	ConcurrencyKey string        `help:"Of the tasks of one key one runs at a time."`
	Delay          time.Duration `help:"Run it after this time, such as 10m."`
	RunAt          *time.Time    `help:"Do not run it before, such as 2030-01-02T15:04:05Z."`
	Priority       int           `help:"1, the most urgent, to 4; default 2."`
	MaxAttempts    int           `help:"Tries of a slice; default by the server's settings."`
	Follow         bool          `help:"Show its progress until it is over; exit code 1 unless it has succeeded."`
}

// Run implements the command.
func (c *taskSubmitCmd) Run(ctx context.Context, io streams) error {
	param, err := c.param()
	if err != nil {
		return err
	}
	t, err := c.client().SubmitTask(ctx, client.NewTask{ApiEngineKey: c.Key, Param: param, IdempotencyKey: c.IdempotencyKey,
		ConcurrencyKey: c.ConcurrencyKey, Delay: c.Delay.Seconds(), RunAt: c.RunAt, Priority: c.Priority, MaxAttempts: c.MaxAttempts})
	if err != nil || !c.Follow {
		return show(io, c.JSON, t, err)
	}
	fmt.Fprintln(io.err, "task", t.Id) // whoever leaves can come back by it
	return followTask(ctx, io, &c.remote, t.Id)
}

type taskListCmd struct {
	remote
	Status string `help:"Pending, Running, Retrying, Succeeded, Failed, Canceled or Dead."`
	API    string `name:"api" help:"ApiEngineKey."`
	Key    string `help:"ConcurrencyKey."`
	Source string `help:"Who asked: api, script:KEY or schedule:KEY."`
	Limit  int    `default:"100" help:"Tasks of a page, at most 1000."`
	Cursor string `help:"The cursor that the page before has shown."`
}

// Run implements the command.
func (c *taskListCmd) Run(ctx context.Context, io streams) error {
	list, err := c.client().Tasks(ctx, client.TaskFilter{Status: c.Status, API: c.API, Key: c.Key, Source: c.Source, Limit: c.Limit, Cursor: c.Cursor})
	return show(io, c.JSON, list, err)
}

// oneTask names a task.
type oneTask struct {
	remote
	ID string `arg:"" help:"The task's id."`
}

type taskShowCmd struct {
	oneTask
	Follow bool `help:"Show its progress until it is over; exit code 1 unless it has succeeded."`
}

// Run implements the command.
func (c *taskShowCmd) Run(ctx context.Context, io streams) error {
	if c.Follow {
		return followTask(ctx, io, &c.remote, c.ID)
	}
	t, err := c.client().Task(ctx, c.ID)
	return show(io, c.JSON, t, err)
}

// followTask shows progress and log on the standard error, and the end as the result.
func followTask(ctx context.Context, io streams, r *remote, id string) error {
	bar := newTaskBar(io.err)
	end, err := r.client().FollowTask(ctx, client.Follow{ID: id, Line: bar.line, Change: bar.change})
	bar.close()
	return show(io, r.JSON, end, err)
}

type taskCancelCmd struct{ oneTask }

// Run implements the command.
func (c *taskCancelCmd) Run(ctx context.Context, io streams) error {
	t, err := c.client().CancelTask(ctx, c.ID)
	return show(io, c.JSON, t, err)
}

type taskRetryCmd struct{ oneTask }

// Run implements the command.
func (c *taskRetryCmd) Run(ctx context.Context, io streams) error {
	t, err := c.client().RetryTask(ctx, c.ID)
	return show(io, c.JSON, t, err)
}

type taskSchedulesCmd struct{ remote }

// Run implements the command.
func (c *taskSchedulesCmd) Run(ctx context.Context, io streams) error {
	list, err := c.client().Schedules(ctx)
	return show(io, c.JSON, list, err)
}
