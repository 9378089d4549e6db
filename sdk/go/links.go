package corvo

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"
)

const (
	answerTime  = 20 * time.Second // for one frame, beyond the wait of its fetch
	connectTime = 10 * time.Second
)

type outcome struct {
	Status string `json:"status"`
	Code   string `json:"code"`
	Error  string `json:"error"`
}

type beat struct {
	LeaseToken int64 `json:"lease_token"`
	Progress   any   `json:"progress,omitempty"`
	Checkpoint any   `json:"checkpoint,omitempty"`
}

type wanted struct {
	Queues        []string `json:"queues"`
	WorkerID      string   `json:"worker_id"`
	Hostname      string   `json:"hostname"`
	Count         int      `json:"count"`
	LeaseDuration float64  `json:"lease_duration,omitempty"`
	Timeout       *float64 `json:"timeout,omitempty"` // of requests
	WaitMS        int64    `json:"wait_ms,omitempty"` // of frames
}

// A link is one of the two ways of a worker to the server.
type link interface {
	fetch(ctx context.Context, want wanted, wait time.Duration) ([]Job, error)
	report(ctx context.Context, kind string, item map[string]any) (outcome, error) // kind: ack, fail
	heartbeat(ctx context.Context, jobs map[string]beat) (map[string]outcome, error)
	close()
}

type httpLink struct{ client *Client }

func (l httpLink) fetch(ctx context.Context, want wanted, wait time.Duration) ([]Job, error) {
	want.Timeout = Ptr(wait.Seconds())
	var answer struct{ Jobs []Job }
	err := l.client.Call(ctx, "fetch_batch", nil, want, &answer)
	return answer.Jobs, err
}

func (l httpLink) report(ctx context.Context, kind string, item map[string]any) (outcome, error) {
	var answer struct{ Results []outcome }
	err := l.client.Call(ctx, kind+"_batch", nil, map[string]any{kind + "s": []any{item}}, &answer)
	if err != nil || len(answer.Results) == 0 {
		return outcome{}, err
	}
	return answer.Results[0], nil
}

func (l httpLink) heartbeat(ctx context.Context, jobs map[string]beat) (map[string]outcome, error) {
	var answer struct{ Jobs map[string]outcome }
	err := l.client.Call(ctx, "heartbeat", nil, map[string]any{"jobs": jobs}, &answer)
	return answer.Jobs, err
}

func (l httpLink) close() {}

type frame struct {
	ID           *int64             `json:"id"`
	Jobs         []Job              `json:"jobs"`
	Acked        []outcome          `json:"acked"`
	Failed       []outcome          `json:"failed"`
	Heartbeat    map[string]outcome `json:"heartbeat"`
	Code         string             `json:"code"`
	Error        string             `json:"error"`
	RetryAfterMS int                `json:"retry_after_ms"`
}

func (f frame) refusal() error {
	if f.Code == "" {
		return nil
	}
	wait := time.Duration(f.RetryAfterMS) * time.Millisecond
	return &Error{Kind: ErrRefused, Code: f.Code, Message: f.Error, RetryAfter: wait}
}

// streamLink sends frames over one WebSocket. A connection that breaks fails what was open; the worker sends it again.
type streamLink struct {
	client  *Client
	mutex   sync.Mutex
	current *socket
	open    map[int64]chan frame
	last    int64
}

func (l *streamLink) fetch(ctx context.Context, want wanted, wait time.Duration) ([]Job, error) {
	want.WaitMS = wait.Milliseconds()
	answer, err := l.ask(ctx, map[string]any{"fetch": want}, answerTime+wait)
	if err == nil && answer.Jobs == nil {
		err = answer.refusal()
	}
	return answer.Jobs, err
}

func (l *streamLink) report(ctx context.Context, kind string, item map[string]any) (outcome, error) {
	answer, err := l.ask(ctx, map[string]any{kind: []any{item}}, answerTime)
	if err != nil {
		return outcome{}, err
	}
	for _, results := range [][]outcome{answer.Acked, answer.Failed} {
		if len(results) > 0 {
			return results[0], nil
		}
	}
	return outcome{Code: answer.Code, Error: answer.Error}, nil
}

func (l *streamLink) heartbeat(ctx context.Context, jobs map[string]beat) (map[string]outcome, error) {
	answer, err := l.ask(ctx, map[string]any{"heartbeat": jobs}, answerTime)
	if err == nil && answer.Heartbeat == nil {
		err = answer.refusal()
	}
	return answer.Heartbeat, err
}

func (l *streamLink) ask(ctx context.Context, parts map[string]any, patience time.Duration) (frame, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	on, id, told, err := l.enter(ctx)
	if err != nil {
		return frame{}, err
	}
	parts["id"] = id
	text, err := json.Marshal(parts)
	if err == nil {
		err = on.write(text)
	}
	if err != nil {
		l.lose(on)
		return frame{}, unreachable(err)
	}
	select {
	case answer, ok := <-told:
		if !ok {
			return frame{}, unreachable(errors.New("the stream broke"))
		}
		return answer, nil
	case <-ctx.Done():
		l.mutex.Lock()
		delete(l.open, id)
		l.mutex.Unlock()
		return frame{}, unreachable(ctx.Err())
	}
}

// enter connects if need be, and registers a frame.
func (l *streamLink) enter(ctx context.Context) (*socket, int64, chan frame, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.current == nil {
		dialing, cancel := context.WithTimeout(ctx, connectTime)
		defer cancel()
		header := http.Header{}
		l.client.identify(header)
		made, err := dial(dialing, streamURL(l.client.URL), header)
		if err != nil {
			var failed *Error
			if errors.As(err, &failed) {
				return nil, 0, nil, err
			}
			return nil, 0, nil, unreachable(err)
		}
		l.current, l.open = made, map[int64]chan frame{}
		go l.listen(made)
	}
	l.last++
	told := make(chan frame, 1)
	l.open[l.last] = told
	return l.current, l.last, told, nil
}

func (l *streamLink) listen(on *socket) {
	defer l.lose(on)
	for {
		text, err := on.read()
		if err != nil {
			return
		}
		var answer frame
		if json.Unmarshal(text, &answer) != nil || answer.ID == nil {
			continue // a server that stops says so without an id, answers open frames, and closes
		}
		l.mutex.Lock()
		told, ok := l.open[*answer.ID]
		delete(l.open, *answer.ID)
		l.mutex.Unlock()
		if ok {
			told <- answer
		}
	}
}

func (l *streamLink) lose(on *socket) {
	on.close()
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.current == on {
		l.current = nil
		for id, told := range l.open {
			delete(l.open, id)
			close(told)
		}
	}
}

func (l *streamLink) close() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.current != nil {
		l.current.close()
	}
}
