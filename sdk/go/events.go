package corvo

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	silence    = 40 * time.Second // the server says something every 15 s
	eventPause = 500 * time.Millisecond
	eventBytes = 1 << 20
)

// An Event is a change of state of a job, a queue or something else.
type Event struct {
	ID    string          `json:"-"` // give it as Last to go on behind it
	Type  string          `json:"type"`
	JobID string          `json:"job_id"`
	Queue string          `json:"queue"`
	AtNS  int64           `json:"at_ns"`
	Data  json.RawMessage `json:"data"`
}

// An EventFilter says which events are wanted; empty fields mean all.
type EventFilter struct {
	Queues, JobIDs, Types []string
	Last                  string // begin behind this event; "0": the oldest that is kept; "": from now on
}

// Events are those of every change, for ever. A connection that breaks is taken up again behind the last event that
// came: none is lost. It ends with the context, or with the refusal of the server.
func (c *Client) Events(ctx context.Context, filter EventFilter) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for ctx.Err() == nil {
			err := c.readEvents(ctx, &filter, yield)
			if errors.Is(err, errStopped) {
				return
			}
			var failed *Error
			if errors.As(err, &failed) && failed.Status >= 400 && failed.Status < 500 && failed.Kind != ErrOverloaded {
				yield(Event{}, err)
				return
			}
			select {
			case <-time.After(eventPause):
			case <-ctx.Done():
			}
		}
	}
}

var errStopped = errors.New("the reader has enough")

func (c *Client) readEvents(ctx context.Context, filter *EventFilter, yield func(Event, error) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	quiet := time.AfterFunc(silence, cancel)
	defer quiet.Stop()
	request, err := http.NewRequestWithContext(ctx, "GET", strings.TrimRight(c.URL, "/")+"/api/v1/events?"+filter.query(), nil)
	if err != nil {
		return err
	}
	c.identify(request.Header)
	request.Header.Set("Accept", "text/event-stream")
	response, err := c.http().Do(request)
	if err != nil {
		return unreachable(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		content, _ := io.ReadAll(io.LimitReader(response.Body, eventBytes))
		return errorOf(response, content)
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, eventBytes)
	event, data := Event{}, ""
	for lines.Scan() {
		quiet.Reset(silence)
		name, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case lines.Text() == "" && data != "":
			if err := json.Unmarshal([]byte(data), &event); err != nil {
				return err
			}
			if event.ID != "" {
				filter.Last = event.ID
			}
			if !yield(event, nil) {
				return errStopped
			}
			event, data = Event{}, ""
		case name == "id":
			event.ID = value
		case name == "data":
			data += value
		}
	}
	return lines.Err()
}

func (f *EventFilter) query() string {
	values := url.Values{}
	for name, value := range map[string]string{
		"queues": strings.Join(f.Queues, ","), "job_ids": strings.Join(f.JobIDs, ","),
		"types": strings.Join(f.Types, ","), "last_event_id": f.Last,
	} {
		if value != "" {
			values.Set(name, value)
		}
	}
	return values.Encode()
}
