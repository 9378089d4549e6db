// Command conformance drives the library for the conformance suite: one JSON object a line in, one out.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"corvo.dev/go"
)

type asked struct {
	ID          int             `json:"id"`
	Do          string          `json:"do"`
	URL         string          `json:"url"`
	DeadlineMS  int             `json:"deadline_ms"`
	Name        string          `json:"name"`
	Path        []string        `json:"path"`
	Query       map[string]any  `json:"query"`
	Body        json.RawMessage `json:"body"`
	Count       int             `json:"count"`
	Queues      []string        `json:"queues"`
	Transport   string          `json:"transport"`
	Concurrency int             `json:"concurrency"`
	WorkerID    string          `json:"worker_id"`
	LeaseS      int             `json:"lease_s"`
}

var (
	client  *corvo.Client
	worker  *corvo.Worker
	snoozed sync.Map // job → the step behind the one that snoozed it
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var request asked
		if err := json.Unmarshal(lines.Bytes(), &request); err != nil {
			slog.Error("unreadable", "error", err)
			os.Exit(1)
		}
		answer, err := serve(request)
		told := map[string]any{"id": request.ID, "answer": answer}
		if err != nil {
			told = map[string]any{"id": request.ID, "error": describe(err)}
		}
		text, _ := json.Marshal(told)
		fmt.Println(string(text))
	}
}

func serve(request asked) (any, error) {
	switch request.Do {
	case "open":
		deadline := time.Duration(request.DeadlineMS) * time.Millisecond
		client = &corvo.Client{URL: request.URL, Deadline: deadline}
		return nil, nil
	case "call":
		return call(request)
	case "events":
		return events(request)
	case "work":
		worker = &corvo.Worker{
			Client: client, ID: request.WorkerID, Concurrency: request.Concurrency,
			Lease: time.Duration(request.LeaseS) * time.Second, OverHTTP: request.Transport == "http",
		}
		for _, queue := range request.Queues {
			worker.Handle(queue, handle)
		}
		worker.Start()
		return nil, nil
	case "drain", "close":
		if worker == nil {
			return nil, nil
		}
		err := worker.Drain()
		worker = nil
		return nil, err
	}
	return nil, fmt.Errorf("unknown: %s", request.Do)
}

func call(request asked) (any, error) {
	ctx := context.Background()
	if request.DeadlineMS > 0 {
		limited := *client
		limited.Deadline = time.Duration(request.DeadlineMS) * time.Millisecond
		return callWith(ctx, &limited, request)
	}
	return callWith(ctx, client, request)
}

func callWith(ctx context.Context, client *corvo.Client, request asked) (any, error) {
	var sent any
	if len(request.Query) > 0 {
		sent = request.Query
	}
	if string(request.Body) != "null" && len(request.Body) > 0 {
		sent = request.Body
	}
	var answer any
	err := client.Call(ctx, request.Name, request.Path, sent, &answer)
	return answer, err
}

func events(request asked) (any, error) {
	filter := corvo.EventFilter{}
	if ids, ok := request.Query["job_ids"].(string); ok {
		filter.JobIDs = strings.Split(ids, ",")
	}
	filter.Last, _ = request.Query["last_event_id"].(string)
	found := []corvo.Event{}
	for event, err := range client.Events(context.Background(), filter) {
		if err != nil {
			return nil, err
		}
		if found = append(found, event); len(found) == request.Count {
			break
		}
	}
	return found, nil
}

func handle(ctx context.Context, job *corvo.Job) (any, error) {
	var payload struct{ Steps []map[string]any }
	if err := job.Bind(&payload); err != nil {
		return nil, err
	}
	begin := 0
	if at, ok := snoozed.Load(job.ID); ok {
		begin = at.(int)
	}
	for number, step := range payload.Steps[begin:] {
		for name, value := range step {
			switch name {
			case "sleep_ms":
				time.Sleep(time.Duration(value.(float64)) * time.Millisecond)
			case "progress":
				if err := job.Progress(value); err != nil {
					return nil, err
				}
			case "checkpoint":
				if err := job.SaveCheckpoint(value); err != nil {
					return nil, err
				}
			case "return":
				return value, nil
			case "return_checkpoint":
				return job.Checkpoint, nil
			case "fail":
				return nil, errors.New(value.(string))
			case "discard":
				return nil, corvo.Discard{Reason: value.(string)}
			case "snooze_ms":
				snoozed.Store(job.ID, begin+number+1)
				return nil, corvo.Snooze{For: time.Duration(value.(float64)) * time.Millisecond}
			case "until_cancelled":
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}
		}
	}
	return nil, nil
}

var classes = []struct {
	kind error
	name string
}{
	{corvo.ErrLeaseLost, "LeaseLost"}, {corvo.ErrWrongState, "WrongState"}, {corvo.ErrNotFound, "NotFound"},
	{corvo.ErrInvalid, "InvalidRequest"}, {corvo.ErrOverloaded, "Overloaded"}, {corvo.ErrUnavailable, "Unavailable"},
	{corvo.ErrUnauthorized, "Unauthorized"}, {corvo.ErrForbidden, "Forbidden"}, {corvo.ErrUnreachable, "Unreachable"},
}

func describe(err error) map[string]any {
	told := map[string]any{"class": "Error", "message": err.Error()}
	var failed *corvo.Error
	if errors.As(err, &failed) {
		told["code"], told["status"] = failed.Code, failed.Status
	}
	for _, one := range classes {
		if errors.Is(err, one.kind) {
			told["class"] = one.name
		}
	}
	return told
}
